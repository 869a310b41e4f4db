//! Files made of a header's text and data, right or wrong.

/// The file with this header and this data.
pub fn file(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

/// The file with this header and `len` zero bytes of data.
pub fn zeros(header: impl AsRef<[u8]>, len: usize) -> Vec<u8> {
    file(header, &vec![0; len])
}

/// An entry of a U8 tensor of `len` bytes.
pub fn u8_entry(name: &str, begin: u64, len: u64) -> String {
    let end = begin + len;
    format!(r#""{name}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{begin},{end}]}}"#)
}
