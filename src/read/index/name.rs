//! The rule for the names of shards. A name in an untrusted index must lead to a safetensors file
//! in the index's folder or below it, on every operating system, not only on the current one.

use crate::base::error::ShardNameFault as Fault;
use crate::base::limits::IndexLimits;

/// The ending of every shard's name.
const EXTENSION: [char; 12] = ['.', 's', 'a', 'f', 'e', 't', 'e', 'n', 's', 'o', 'r', 's'];

/// Checks a name. Returns whether it begins with `./`.
pub(super) fn check(
    chars: impl Iterator<Item = char>,
    limits: &IndexLimits,
) -> Result<bool, Fault> {
    let mut part = Part::default();
    let mut parts: u32 = 0;
    let mut dot_prefix = false;
    // The last characters seen so far.
    let mut tail = ['\0'; EXTENSION.len()];
    let mut chars = chars.peekable();
    if chars.peek() == Some(&'/') {
        return Err(Fault::Absolute);
    }
    for c in chars {
        match c {
            '\\' => return Err(Fault::Backslash),
            ':' => return Err(Fault::Colon),
            '\0'..='\u{1f}' | '\u{7f}' => return Err(Fault::Control),
            '/' if parts == 0 && !dot_prefix && part.is_dots(1) => {
                if !limits.dot_prefix {
                    return Err(Fault::DotPrefix);
                }
                dot_prefix = true;
                part = Part::default();
            }
            '/' => {
                part.check()?;
                if !limits.subfolders {
                    return Err(Fault::Subfolder);
                }
                parts = parts.saturating_add(1);
                part = Part::default();
            }
            c => part.push(c),
        }
        tail.rotate_left(1);
        if let Some(last) = tail.last_mut() {
            *last = c;
        }
    }
    part.check()?;
    if tail == EXTENSION {
        Ok(dot_prefix)
    } else {
        Err(Fault::Extension)
    }
}

/// A component of a name, between slashes.
#[derive(Default)]
struct Part {
    len: usize,
    dots: usize,
    last: char,
    /// The characters before the first dot, with ASCII letters in lower case. Only the first 8 are
    /// stored, because the name of a device is shorter.
    stem: [char; 8],
    /// The length of the stem without trailing spaces.
    stem_len: usize,
}

impl Part {
    fn push(&mut self, c: char) {
        if c == '.' {
            self.dots = self.dots.saturating_add(1);
        } else if self.dots == 0 && c != ' ' {
            if let Some(slot) = self.stem.get_mut(self.len) {
                *slot = c.to_ascii_lowercase();
            }
            self.stem_len = self.len.saturating_add(1);
        } else if let (0, Some(slot)) = (self.dots, self.stem.get_mut(self.len)) {
            *slot = c;
        }
        self.len = self.len.saturating_add(1);
        self.last = c;
    }

    /// Returns `true` if the part is exactly this many dots.
    fn is_dots(&self, count: usize) -> bool {
        self.len == count && self.dots == count
    }

    fn check(&self) -> Result<(), Fault> {
        if self.len == 0 {
            Err(Fault::Empty)
        } else if self.is_dots(1) {
            Err(Fault::Dot)
        } else if self.is_dots(2) {
            Err(Fault::Parent)
        } else if matches!(self.last, '.' | ' ') {
            Err(Fault::TrailingDot)
        } else if self.is_device() {
            Err(Fault::Device)
        } else {
            Ok(())
        }
    }

    /// Returns `true` if Windows interprets the part as a device. Windows ignores the extension and
    /// any spaces before it. The devices are those listed in Microsoft's "Naming Files, Paths, and
    /// Namespaces", and the console's `CONIN$` and `CONOUT$`.
    fn is_device(&self) -> bool {
        let Some(stem) = self.stem.get(..self.stem_len) else { return false };
        match stem {
            ['c', 'o', 'n'] | ['p', 'r', 'n'] | ['a', 'u', 'x'] | ['n', 'u', 'l'] => true,
            ['c', 'o', 'm', digit] | ['l', 'p', 't', digit] => {
                matches!(digit, '0'..='9' | '¹' | '²' | '³')
            }
            ['c', 'o', 'n', 'i', 'n', '$'] | ['c', 'o', 'n', 'o', 'u', 't', '$'] => true,
            _ => false,
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_files_in_the_folder_or_below() {
        let cases = [
            ("model.safetensors", Ok(false)),
            ("model-00001-of-00002.safetensors", Ok(false)),
            ("sub/folder/model.safetensors", Ok(false)),
            ("./model.safetensors", Ok(true)),
            ("./sub/model.safetensors", Ok(true)),
            (".safetensors", Ok(false)),
            ("..model.safetensors", Ok(false)),
            ("...safetensors", Ok(false)),
            ("modèle 😀.safetensors", Ok(false)),
            ("console.safetensors", Ok(false)),
            ("null.safetensors", Ok(false)),
            ("com10.safetensors", Ok(false)),
            ("~/model.safetensors", Ok(false)),
            ("con a.safetensors", Ok(false)),
            ("conout$$.safetensors", Ok(false)),
            (" nul.safetensors", Ok(false)),
            ("nul        .safetensors", Err(Fault::Device)),
            ("sub/conin$   .safetensors", Err(Fault::Device)),
            ("COM1                               .a.safetensors", Err(Fault::Device)),
            ("", Err(Fault::Empty)),
            ("./", Err(Fault::Empty)),
            ("sub//model.safetensors", Err(Fault::Empty)),
            ("sub/", Err(Fault::Empty)),
            ("/model.safetensors", Err(Fault::Absolute)),
            ("//host/share/model.safetensors", Err(Fault::Absolute)),
            (r"\\host\share\model.safetensors", Err(Fault::Backslash)),
            (r"..\model.safetensors", Err(Fault::Backslash)),
            ("C:model.safetensors", Err(Fault::Colon)),
            ("https://host/model.safetensors", Err(Fault::Colon)),
            ("model:stream.safetensors", Err(Fault::Colon)),
            ("../model.safetensors", Err(Fault::Parent)),
            ("./../model.safetensors", Err(Fault::Parent)),
            ("sub/../model.safetensors", Err(Fault::Parent)),
            ("..", Err(Fault::Parent)),
            (".", Err(Fault::Dot)),
            ("././model.safetensors", Err(Fault::Dot)),
            ("sub/./model.safetensors", Err(Fault::Dot)),
            (".. /model.safetensors", Err(Fault::TrailingDot)),
            (".../model.safetensors", Err(Fault::TrailingDot)),
            ("model.safetensors ", Err(Fault::TrailingDot)),
            ("model.safetensors.", Err(Fault::TrailingDot)),
            ("mo\0del.safetensors", Err(Fault::Control)),
            ("mo\ndel.safetensors", Err(Fault::Control)),
            ("nul.safetensors", Err(Fault::Device)),
            ("NUL .safetensors", Err(Fault::Device)),
            ("Com1.model.safetensors", Err(Fault::Device)),
            ("lpt².safetensors", Err(Fault::Device)),
            ("aux/model.safetensors", Err(Fault::Device)),
            ("conout$.safetensors", Err(Fault::Device)),
            ("model.bin", Err(Fault::Extension)),
            ("model.SAFETENSORS", Err(Fault::Extension)),
            ("model.safetensors.index.json", Err(Fault::Extension)),
            ("model.safetensorsx", Err(Fault::Extension)),
            ("safetensors", Err(Fault::Extension)),
        ];
        for (name, expected) in cases {
            assert_eq!(check(name.chars(), &IndexLimits::DEFAULT), expected, "{name:?}");
        }
        let strict = |name: &str| check(name.chars(), &IndexLimits::STRICT);
        assert_eq!(strict("model.safetensors"), Ok(false));
        assert_eq!(strict("./model.safetensors"), Err(Fault::DotPrefix));
        assert_eq!(strict("sub/model.safetensors"), Err(Fault::Subfolder));
    }
}
