//! Recognises files of other formats by their first bytes, so that an error can name the format
//! instead of reporting a header length that is too large.

use core::fmt;

/// A format of files that are often passed to safetensors readers by mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// A zip archive, such as one written by `torch.save`.
    Zip,
    /// Data compressed with gzip.
    Gzip,
    /// Data compressed with zstd, xz, bzip2 or 7z.
    Compressed,
    /// A Python pickle.
    Pickle,
    /// A Git LFS pointer: a text of about 130 bytes in place of the file.
    GitLfsPointer,
    /// An HTML or XML page.
    Html,
    /// JSON text.
    Json,
    /// Other plain text.
    Text,
    /// A GGUF model.
    Gguf,
    /// A NumPy array.
    Npy,
    /// An HDF5 file.
    Hdf5,
    /// Zero bytes.
    Zeros,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Foreign::Zip => "a zip archive, such as a PyTorch file",
            Foreign::Gzip => "gzip-compressed data",
            Foreign::Compressed => "compressed data",
            Foreign::Pickle => "a Python pickle",
            Foreign::GitLfsPointer => "a Git LFS pointer; fetch the file with `git lfs pull`",
            Foreign::Html => "a web page (HTML or XML)",
            Foreign::Json => "JSON text, such as a shard index or a server's error",
            Foreign::Text => "plain text, such as a server's error",
            Foreign::Gguf => "a GGUF model",
            Foreign::Npy => "a NumPy array",
            Foreign::Hdf5 => "an HDF5 file",
            Foreign::Zeros => "all zeros, as in a download that never started",
        })
    }
}

/// Returns the format that a file's first bytes belong to, if it is a known one.
///
/// Call this only if the frame or the header is invalid, since the bytes of a valid header length
/// can match any format. More bytes give better results. With fewer than 8, only some formats are
/// recognised.
#[cold]
pub(crate) fn recognise(file: &[u8]) -> Option<Foreign> {
    // A JSON object in the header's place: whatever the length looks like, this is a safetensors
    // file that is truncated or damaged.
    if file.get(8..).is_some_and(|header| header.starts_with(b"{\"")) {
        return None;
    }
    // At least three bytes, since shorter prefixes are plausible header lengths.
    let prefixes: [(&[u8], Foreign); 14] = [
        (b"PK\x03\x04", Foreign::Zip),
        (b"PK\x05\x06", Foreign::Zip),
        (b"\x1f\x8b\x08", Foreign::Gzip),
        (b"\x28\xb5\x2f\xfd", Foreign::Compressed),
        (b"\xfd7zXZ", Foreign::Compressed),
        (b"BZh", Foreign::Compressed),
        (b"7z\xbc\xaf", Foreign::Compressed),
        (b"\x80\x04\x95", Foreign::Pickle),
        (b"\x80\x05\x95", Foreign::Pickle),
        (b"version ", Foreign::GitLfsPointer),
        (b"GGUF", Foreign::Gguf),
        (b"\x93NUMPY", Foreign::Npy),
        (b"\x89HDF", Foreign::Hdf5),
        (b"\xef\xbb\xbf", Foreign::Text),
    ];
    for (prefix, format) in prefixes {
        if file.starts_with(prefix) {
            return Some(format);
        }
    }
    // Pickles before protocol 4 have no frame: after the protocol comes an opcode that begins a
    // value.
    if let [0x80, 2 | 3, b'}' | b']' | b'(' | b')' | b'c' | b'X' | 0x8a, ..] = file {
        return Some(Foreign::Pickle);
    }
    let first = file.get(..8)?;
    if first.iter().all(|&byte| byte == 0) {
        let sample = file.get(..64).unwrap_or(file);
        let zeros = sample.len() > 8 && sample.iter().all(|&byte| byte == 0);
        return zeros.then_some(Foreign::Zeros);
    }
    if !first.iter().all(|&byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e)) {
        return None;
    }
    Some(match first.trim_ascii_start().first() {
        Some(b'<') => Foreign::Html,
        Some(b'{' | b'[') => Foreign::Json,
        _ => Foreign::Text,
    })
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn recognises_common_formats() {
        let cases: [(&[u8], Option<Foreign>); 16] = [
            (b"PK\x03\x04\0\0\x08\x08\0\0\0\0", Some(Foreign::Zip)),
            (b"\x1f\x8b\x08\0\0\0\0\0\0", Some(Foreign::Gzip)),
            (b"\x80\x02}q\0.", Some(Foreign::Pickle)),
            (b"version https://git-lfs.github.com/spec/v1\n", Some(Foreign::GitLfsPointer)),
            (b"<!DOCTYPE html>", Some(Foreign::Html)),
            (b"\n  <html><body>", Some(Foreign::Html)),
            (b"{\"error\":\"x\"}", Some(Foreign::Json)),
            (b"Entry not found", Some(Foreign::Text)),
            (&[0; 64], Some(Foreign::Zeros)),
            (b"GGUF\x03\0\0\0", Some(Foreign::Gguf)),
            (b"\x08\0\0\0\0\0\0\0", None),
            (&[0; 8], None),
            (b"\0\0\0\0\0\0\0\0{}", None),
            (b"PK\x03\x04\0\0\0\0{\"a\":{\"dtype\"", None),
            (b"\x80\x02\0\0\0\0\0\0", None),
            (b"abc", None),
        ];
        for (file, format) in cases {
            assert_eq!(recognise(file), format, "{}", file.escape_ascii());
        }
    }
}
