//! Random models, and the many ways to spell a model's header.

use quickcheck::{Arbitrary, Gen};
use safetensors_zero::Dtype;

use super::file;
use super::paths::{Content, Tensor};
use super::rng::Rng;

/// A valid model and how its header is spelled.
#[derive(Debug, Clone)]
pub struct Model {
    /// In data order.
    pub tensors: Vec<Spec>,
    pub metadata: Metadata,
    pub spelling: Spelling,
}

#[derive(Debug, Clone)]
pub struct Spec {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub data: Vec<u8>,
}

#[cfg(feature = "alloc")]
impl safetensors_zero::View for Spec {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> safetensors_zero::Shape<'_> {
        safetensors_zero::Shape::wide(&self.shape)
    }

    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        std::borrow::Cow::Borrowed(&self.data)
    }
}

#[derive(Debug, Clone)]
pub enum Metadata {
    None,
    Null,
    Map(Vec<(String, String)>),
}

/// How a header is written, drawn from a seed.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub seed: u64,
    /// Exactly as the reference crate writes: compact, in data order, escaped only where JSON
    /// requires it.
    pub canonical: bool,
}

const NAMES: [&str; 20] = [
    "",
    "a",
    "A",
    "weight",
    "model.layers.0.self_attn.q_proj.weight",
    "dtype",
    "shape",
    "data_offsets",
    "__metadata",
    "__metadata___",
    "\u{0}",
    "a\u{0}b",
    "a\"b",
    "a\\b",
    "é",
    "e\u{301}",
    "😀",
    "\u{1b}[31m",
    "../../etc/passwd",
    "\u{202e}x",
];

fn string(rng: &mut Rng) -> String {
    if rng.once_in(3) {
        return (*rng.choose(&NAMES)).to_owned();
    }
    let len = if rng.once_in(10) { rng.below(300) } else { rng.below(24) };
    let character = |rng: &mut Rng| match rng.below(12) {
        0 => char::from_u32(rng.below(0x20) as u32).unwrap(),
        1 => *rng.choose(&['"', '\\', '/', '\u{7f}']),
        2 => char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
        _ => *rng.choose(&['a', 'b', '.', '0', '1', '_', 'w', ' ']),
    };
    (0..len).map(|_| character(rng)).collect()
}

/// Returns a shape of rank 0 to 12 with few elements that fill whole bytes.
fn shape(rng: &mut Rng, dtype: Dtype) -> Vec<u64> {
    let rank = if rng.once_in(2) { rng.below(4) } else { rng.below(13) };
    let mut elements = 1;
    let mut shape: Vec<u64> = (0..rank)
        .map(|_| {
            let most = if elements > 200 { 1 } else { 5 };
            let dimension = if rng.once_in(25) { 0 } else { 1 + rng.below(most) as u64 };
            elements *= dimension.max(1);
            dimension
        })
        .collect();
    let group = match dtype.bitsize() {
        4 => 2,
        6 => 4,
        _ => 1,
    };
    if shape.iter().product::<u64>() % group != 0 {
        shape.insert(rng.below(shape.len() + 1), group);
    }
    if rng.once_in(40) {
        // Large dimensions are valid in a tensor without elements.
        shape.extend([0, u64::MAX, 1 << 60]);
        rng.shuffle(&mut shape);
    }
    shape
}

impl Model {
    pub fn random(rng: &mut Rng, tensors: usize) -> Model {
        let mut names = std::collections::HashSet::from(["__metadata__".to_owned()]);
        let specs = (0..tensors)
            .map(|_| {
                let mut name = string(rng);
                while !names.insert(name.clone()) {
                    name = format!("{name}{}", names.len());
                }
                let dtype = *rng.choose(&Dtype::ALL);
                let shape = shape(rng, dtype);
                let elements = if shape.contains(&0) { 0 } else { shape.iter().product::<u64>() };
                let data = rng.bytes(elements as usize * dtype.bitsize() / 8);
                Spec { name, dtype, shape, data }
            })
            .collect();
        let metadata = match rng.below(4) {
            0 => Metadata::None,
            1 => Metadata::Null,
            _ => {
                let mut keys = std::collections::HashSet::new();
                let count = if rng.once_in(5) { rng.below(40) } else { rng.below(4) };
                let pairs = (0..count).map(|_| (string(rng), string(rng)));
                Metadata::Map(pairs.filter(|(key, _)| keys.insert(key.clone())).collect())
            }
        };
        let spelling = Spelling { seed: rng.next(), canonical: rng.once_in(4) };
        Model { tensors: specs, metadata, spelling }
    }

    /// Returns the tensors in the form that writers take.
    pub fn views(&self) -> Vec<(&str, &Spec)> {
        self.tensors.iter().map(|spec| (spec.name.as_str(), spec)).collect()
    }

    /// Returns the file and its contents.
    pub fn write(&self) -> (Vec<u8>, Content) {
        let mut writer = Writer {
            rng: Rng(self.spelling.seed),
            canonical: self.spelling.canonical,
            header: String::new(),
        };
        let mut offset = 0;
        let mut listed: Vec<(Tensor, usize)> = Vec::new();
        for spec in &self.tensors {
            let end = offset + spec.data.len() as u64;
            let tensor = Tensor {
                name: spec.name.clone(),
                dtype: spec.dtype,
                shape: spec.shape.clone(),
                data_offsets: (offset, end),
            };
            listed.push((tensor, 0));
            offset = end;
        }
        if !self.spelling.canonical && writer.rng.once_in(2) {
            writer.rng.shuffle(&mut listed);
        }
        writer.header(&mut listed, &self.metadata);
        let header = writer.header;

        // Tensors without bytes stay in header order.
        listed.sort_by_key(|(tensor, position)| (tensor.data_offsets, *position));
        let data: Vec<u8> = self.tensors.iter().flat_map(|spec| spec.data.clone()).collect();
        let content = Content {
            data_start: 8 + header.len() as u64,
            metadata: match &self.metadata {
                Metadata::Map(pairs) => Some(pairs.clone()),
                _ => None,
            },
            tensors: listed.into_iter().map(|(tensor, _)| tensor).collect(),
        };
        (file::file(header, &data), content)
    }
}

struct Writer {
    rng: Rng,
    canonical: bool,
    header: String,
}

impl Writer {
    fn header(&mut self, listed: &mut [(Tensor, usize)], metadata: &Metadata) {
        self.space();
        self.header.push('{');
        let members = listed.len() + usize::from(!matches!(metadata, Metadata::None));
        let metadata_at = match metadata {
            Metadata::None => usize::MAX,
            _ if self.canonical => 0,
            _ => self.rng.below(members),
        };
        let mut tensors = listed.iter_mut();
        for member in 0..members {
            self.separate(member);
            if member == metadata_at {
                self.metadata(metadata);
            } else {
                let (tensor, position) = tensors.next().unwrap();
                self.entry(tensor, position);
            }
        }
        self.space();
        self.header.push('}');
        if self.canonical {
            while self.header.len() % 8 != 0 {
                self.header.push(' ');
            }
        } else {
            self.space();
        }
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.key("__metadata__");
        let Metadata::Map(pairs) = metadata else {
            self.header.push_str("null");
            return;
        };
        self.header.push('{');
        for (i, (key, value)) in pairs.iter().enumerate() {
            self.separate(i);
            self.key(key);
            self.string(value);
        }
        self.space();
        self.header.push('}');
    }

    fn entry(&mut self, tensor: &Tensor, position: &mut usize) {
        self.key_at(&tensor.name, position);
        self.header.push('{');
        let mut keys = vec!["dtype", "shape", "data_offsets"];
        if !self.canonical {
            self.rng.shuffle(&mut keys);
            while self.rng.once_in(12) {
                keys.insert(self.rng.below(keys.len() + 1), "more");
            }
        }
        for (i, key) in keys.into_iter().enumerate() {
            self.separate(i);
            match key {
                "dtype" => {
                    self.key(key);
                    self.string(tensor.dtype.as_str());
                }
                "shape" => {
                    self.key(key);
                    self.numbers(&tensor.shape);
                }
                "data_offsets" => {
                    self.key(key);
                    self.numbers(&[tensor.data_offsets.0, tensor.data_offsets.1]);
                }
                _ => {
                    let unknown = string(&mut self.rng);
                    self.key(&format!("x{unknown}"));
                    let value = json_value(&mut self.rng, 3);
                    self.header.push_str(&value);
                }
            }
        }
        self.space();
        self.header.push('}');
    }

    fn numbers(&mut self, numbers: &[u64]) {
        self.header.push('[');
        for (i, number) in numbers.iter().enumerate() {
            self.separate(i);
            self.header.push_str(&number.to_string());
        }
        self.space();
        self.header.push(']');
    }

    fn separate(&mut self, i: usize) {
        self.space();
        if i > 0 {
            self.header.push(',');
            self.space();
        }
    }

    fn key(&mut self, key: &str) {
        self.key_at(key, &mut 0);
    }

    fn key_at(&mut self, key: &str, position: &mut usize) {
        *position = self.header.len();
        self.string(key);
        self.space();
        self.header.push(':');
        self.space();
    }

    fn space(&mut self) {
        while !self.canonical && self.rng.once_in(6) {
            self.header.push(*self.rng.choose(&[' ', '\n', '\t', '\r']));
        }
    }

    fn string(&mut self, string: &str) {
        self.header.push('"');
        for c in string.chars() {
            let plain = !matches!(c, '"' | '\\' | '\0'..='\u{1f}');
            if plain && (self.canonical || !self.rng.once_in(8)) {
                self.header.push(c);
                continue;
            }
            let short = match c {
                '"' => Some('"'),
                '\\' => Some('\\'),
                '\u{8}' => Some('b'),
                '\u{c}' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                '/' => Some('/'),
                _ => None,
            };
            match short {
                Some(short) if self.canonical || self.rng.once_in(2) => {
                    self.header.push('\\');
                    self.header.push(short);
                }
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let hex = if self.rng.once_in(2) {
                            format!("{unit:04X}")
                        } else {
                            format!("{unit:04x}")
                        };
                        self.header.push_str("\\u");
                        self.header.push_str(&hex);
                    }
                }
            }
        }
        self.header.push('"');
    }
}

/// Returns a random JSON value, nested at most `depth` levels.
pub fn json_value(rng: &mut Rng, depth: usize) -> String {
    let kinds = if depth == 0 { 6 } else { 8 };
    match rng.below(kinds) {
        0 => (*rng.choose(&["true", "false", "null"])).to_owned(),
        1 => rng.next().to_string(),
        2 => format!("-{}.{}e{}", rng.below(100), rng.below(1000), rng.below(300)),
        3 => {
            (*rng.choose(&["0", "-0", "1E5", "0.1e-7", "1e308", "5e-324", "100000000000000000000"]))
                .to_owned()
        }
        4 | 5 => serde_json::to_string(&string(rng)).unwrap(),
        6 => {
            let items: Vec<String> =
                (0..rng.below(4)).map(|_| json_value(rng, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let member = |rng: &mut Rng| {
                let key = serde_json::to_string(&string(rng)).unwrap();
                format!("{key} : {}", json_value(rng, depth - 1))
            };
            let members: Vec<String> = (0..rng.below(4)).map(|_| member(rng)).collect();
            format!("{{{}}}", members.join(" ,\n"))
        }
    }
}

impl Arbitrary for Model {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut rng = Rng(u64::arbitrary(g));
        let tensors = rng.below(g.size().min(12) + 1);
        Model::random(&mut rng, tensors)
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let model = self.clone();
        let without_metadata = Model { metadata: Metadata::None, ..model.clone() };
        let has_metadata = !matches!(model.metadata, Metadata::None);
        let fewer = (0..model.tensors.len()).map(move |i| {
            let mut fewer = model.clone();
            fewer.tensors.remove(i);
            fewer
        });
        Box::new(fewer.chain(has_metadata.then_some(without_metadata)))
    }
}
