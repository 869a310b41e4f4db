//! Lists the tensors of a model on a server with two requests: one for the first 8 bytes, whose
//! response also has the file's length, and one for the header. No tensor data is fetched.
//!
//! cargo run --example remote_header -- http://HOST/model.safetensors
//! cargo test --example remote_header
//!
//! The second command tests it against local servers, both honest and hostile. Only plain http is
//! compiled in, to keep this crate's development dependencies small. For https, which model hubs
//! require, enable ureq's feature `rustls`; the code stays the same:
//! `ureq = { version = "3.2", default-features = false, features = ["rustls"] }`.
//!
//! The server isn't trusted. The header's length is checked before the header is requested, at most
//! one byte more than the requested length is read, and a response with the wrong range or from a
//! different file than the previous one is refused.

#![allow(clippy::restriction, clippy::pedantic)]

use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use safetensors_zero::{Frame, Header, Limits, Table};
use ureq::http::{header, HeaderMap, StatusCode};
use ureq::{Agent, ResponseExt as _};

const USAGE: &str = "usage: remote_header URL";

/// The maximum length of a header. The longest headers of public models have a few MB.
const HEADER_BYTES: u64 = 16 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url] = arguments.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let agent = configured(Agent::config_builder()).build().new_agent();
    match list(&agent, url, &limits()) {
        Ok(listing) if std::io::stdout().write_all(listing.as_bytes()).is_ok() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("remote_header: {url}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn limits() -> Limits {
    let mut limits = Limits::DEFAULT;
    limits.header_bytes = HEADER_BYTES;
    limits
}

type Config = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

fn configured(config: Config) -> Config {
    // Error statuses are handled in `fetch`, which has clearer messages.
    config.http_status_as_error(false).timeout_global(Some(Duration::from_secs(30)))
}

/// Returns the tensors of a model, one per line.
fn list(agent: &Agent, url: &str, limits: &Limits) -> Result<String, String> {
    let first = fetch(agent, url, 0..8)?;
    let frame = Frame::parse(&first.bytes, first.file_len, limits).map_err(|e| e.to_string())?;
    let second = fetch(agent, &first.url, frame.header_range())?;
    if second.file_len != first.file_len || second.etag != first.etag {
        return Err(format!(
            "the file changed between requests: first {} bytes (ETag {}), then {} bytes (ETag {})",
            first.file_len,
            first.etag.as_deref().unwrap_or("none"),
            second.file_len,
            second.etag.as_deref().unwrap_or("none"),
        ));
    }

    let in_header = |error: safetensors_zero::Error| error.in_header(&second.bytes).to_string();
    let header = Header::new(&second.bytes, frame.data_len(), limits).map_err(in_header)?;
    let table = Table::parse_owned(&header).map_err(in_header)?;
    let mut listing = String::new();
    for tensor in table.iter() {
        // Offsets are relative to the data's start, but requests need positions in the file.
        let (begin, end) = tensor.data_offsets;
        let (begin, end) = (frame.data_start() + begin, frame.data_start() + end);
        // Debug escapes control characters in untrusted names.
        listing += &format!("{:?} {} {} {begin}..{end}\n", tensor.name, tensor.dtype, tensor.shape);
    }
    let bytes_fetched = first.bytes.len() + second.bytes.len();
    let (count, file_len) = (table.len(), first.file_len);
    listing += &format!("{count} tensors, fetched {bytes_fetched} of {file_len} bytes\n");
    Ok(listing)
}

/// A server's response to a range request.
struct RangeResponse {
    /// The requested bytes, cut off at the end of the file.
    bytes: Vec<u8>,
    file_len: u64,
    etag: Option<String>,
    /// The URL after redirections.
    url: String,
}

/// Fetches a range of a file, cut off at the end of the file.
fn fetch(agent: &Agent, url: &str, range: Range<u64>) -> Result<RangeResponse, String> {
    let (begin, last) = (range.start, range.end - 1);
    let request = agent.get(url).header(header::RANGE, format!("bytes={begin}-{last}"));
    // The offsets of a compressed response would be different.
    let request = request.header(header::ACCEPT_ENCODING, "identity");
    let mut response = request.call().map_err(|error| error.to_string())?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {}
        StatusCode::OK => {
            return Err("the server does not support range requests: it sends the whole file".into())
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Err(format!("according to the server, the file has no bytes {begin}-{last}"))
        }
        status => return Err(format!("the server responded with status {status}")),
    }
    let file_len = check_range(response.headers(), &range)?;
    let etag = text(response.headers(), header::ETAG).map(str::to_owned);
    let url = response.get_uri().to_string();

    // Reads one extra byte to detect a body that is too long. Memory grows with the bytes received,
    // not with the announced length.
    let expected = range.end.min(file_len) - begin;
    let mut bytes = Vec::new();
    let mut body = response.body_mut().as_reader().take(expected + 1);
    body.read_to_end(&mut bytes).map_err(|error| format!("the response broke off: {error}"))?;
    if bytes.len() as u64 != expected {
        let sent = if bytes.len() as u64 > expected { "more" } else { "fewer" };
        return Err(format!("the server announced {expected} bytes, but sent {sent}"));
    }
    Ok(RangeResponse { bytes, file_len, etag, url })
}

/// Checks that a response has the requested range. Returns the file's length.
fn check_range(headers: &HeaderMap, requested: &Range<u64>) -> Result<u64, String> {
    if let Some(coding) = text(headers, header::CONTENT_ENCODING).filter(|c| *c != "identity") {
        return Err(format!("the server sends the range with the encoding {coding:?}"));
    }
    let range =
        text(headers, header::CONTENT_RANGE).ok_or("the response has no Content-Range header")?;
    let (first, last, file_len) =
        parse_range(range).ok_or_else(|| format!("invalid Content-Range header: {range:?}"))?;
    let end = requested.end.min(file_len);
    if first != requested.start || last.checked_add(1) != Some(end) || end <= first {
        let (begin, last) = (requested.start, requested.end - 1);
        return Err(format!("requested bytes {begin}-{last}, but the server sends {range:?}"));
    }
    Ok(file_len)
}

/// Parses `bytes 0-7/1234`: the first byte, the last byte, the file's length.
fn parse_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, len) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, len.parse().ok()?))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::thread::JoinHandle;

    use super::*;

    const FILE: &[u8] = include_bytes!("animals.safetensors");

    /// A local server on its own thread. Each connection carries one request.
    struct Server {
        address: std::net::SocketAddr,
        /// The path and the `Range` of each request, in order.
        requests: Arc<Mutex<Vec<(String, String)>>>,
        thread: Option<JoinHandle<()>>,
    }

    impl Server {
        /// Starts a server. `respond` gets the number of a request, counted from 0, and its range.
        fn start(respond: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> Server {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let requests = Arc::new(Mutex::new(Vec::new()));
            let received = Arc::clone(&requests);
            let thread = std::thread::spawn(move || {
                for (number, stream) in listener.incoming().enumerate() {
                    let mut stream = stream.unwrap();
                    let Some((path, range)) = read_request(&mut stream) else { break };
                    received.lock().unwrap().push((path, range.clone()));
                    // Fails if the client hangs up early, as it does if the body is too long.
                    let _ = stream.write_all(&respond(number, &range));
                }
            });
            Server { address, requests, thread: Some(thread) }
        }

        fn list(&self, limits: &Limits) -> Result<String, String> {
            // Ignores proxies from the environment, since the server is local.
            let config = configured(Agent::config_builder()).proxy(None);
            let url = format!("http://{}/model.safetensors", self.address);
            list(&config.build().new_agent(), &url, limits)
        }

        /// Returns the requested ranges.
        fn ranges(&self) -> Vec<String> {
            self.requests.lock().unwrap().iter().map(|(_, range)| range.clone()).collect()
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            // A connection without a request stops the server.
            drop(TcpStream::connect(self.address));
            let ended = self.thread.take().unwrap().join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }

    /// Returns the path of a request and its `Range`, which is empty if the header is missing, or
    /// `None` if the client sent no request.
    fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && request.len() < 8192 {
            stream.read_exact(&mut byte).ok()?;
            request.push(byte[0]);
        }
        let request = String::from_utf8(request).unwrap().to_ascii_lowercase();
        let path = request.strip_prefix("get ").unwrap().split_once(" http/1.1\r\n").unwrap().0;
        assert!(request.contains("\r\naccept-encoding: identity\r\n"), "{request}");
        let range = request.lines().find_map(|line| line.strip_prefix("range: "));
        Some((path.to_owned(), range.unwrap_or_default().to_owned()))
    }

    fn response(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
        let mut response = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
        for header in headers {
            response += &format!("{header}\r\n");
        }
        [response.as_bytes(), b"\r\n", body].concat()
    }

    /// Returns an honest server's response to a request for a range of `file`.
    fn honest(file: &[u8], range: &str) -> Vec<u8> {
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let len = file.len();
        if first >= len {
            let range = format!("Content-Range: bytes */{len}");
            return response("416 Range Not Satisfiable", &[&range, "Content-Length: 0"], b"");
        }
        let last = last.min(len - 1);
        let body = &file[first..=last];
        let range = format!("Content-Range: bytes {first}-{last}/{len}");
        let length = format!("Content-Length: {}", body.len());
        response("206 Partial Content", &[&range, &length, "ETag: \"one\""], body)
    }

    /// Returns a 206 response with any `Content-Range` and the whole body.
    fn partial(range: &str, body: &[u8]) -> Vec<u8> {
        response("206 Partial Content", &[&format!("Content-Range: {range}")], body)
    }

    #[test]
    fn lists_with_two_requests() {
        let server = Server::start(|_, range| honest(FILE, range));
        let listing = server.list(&limits()).unwrap();
        let lines: Vec<&str> = listing.lines().collect();
        let data_start = 8 + u64::from_le_bytes(*FILE.first_chunk().unwrap());
        assert_eq!(server.ranges(), ["bytes=0-7", &format!("bytes=8-{}", data_start - 1)]);

        let tensors = safetensors_zero::SafeTensors::deserialize(FILE).unwrap();
        assert_eq!(lines.len(), tensors.len() + 1);
        for (line, (name, view)) in lines.iter().zip(&tensors) {
            let begin = view.data().as_ptr() as usize - FILE.as_ptr() as usize;
            let end = begin + view.data().len();
            let (dtype, shape) = (view.dtype(), view.shape());
            assert_eq!(*line, format!("{name:?} {dtype} {shape} {begin}..{end}"));
        }
        let fetched = format!("fetched {data_start} of {} bytes", FILE.len());
        assert!(lines.last().unwrap().ends_with(&fetched), "{listing}");
    }

    #[test]
    fn follows_a_redirection_once() {
        let server = Server::start(|number, range| match number {
            0 => response("302 Found", &["Location: /blob"], b""),
            _ => honest(FILE, range),
        });
        server.list(&limits()).unwrap();
        let requests = server.requests.lock().unwrap();
        let paths: Vec<&str> = requests.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/model.safetensors", "/blob", "/blob"]);
        assert_eq!((&requests[0].1, &requests[1].1), (&"bytes=0-7".into(), &"bytes=0-7".into()));
    }

    /// Returns the error that a server causes, and the number of requests to it.
    fn error(respond: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> (String, usize) {
        let server = Server::start(respond);
        let error = server.list(&limits()).unwrap_err();
        let ranges = server.ranges();
        assert_eq!(ranges[0], "bytes=0-7");
        (error, ranges.len())
    }

    fn check((error, found): (String, usize), expected: &str, requests: usize) {
        assert!(error.contains(expected), "{error:?}, expected {expected:?}");
        assert_eq!(found, requests, "{error}");
    }

    #[test]
    fn rejects_a_wrong_range() {
        let whole = || response("200 OK", &[&format!("Content-Length: {}", FILE.len())], FILE);
        check(error(move |_, _| whole()), "sends the whole file", 1);
        check(error(|_, _| response("404 Not Found", &[], b"<html>")), "404 Not Found", 1);
        check(error(|_, range| honest(b"", range)), "has no bytes 0-7", 1);
        let without_range = error(|_, _| response("206 Partial Content", &[], &FILE[..8]));
        check(without_range, "no Content-Range", 1);
        for range in ["bytes 0-7/*", "bytes */372", "0-7/372", "bytes 0-7", "bytes 0-7/-1"] {
            check(error(move |_, _| partial(range, &FILE[..8])), "invalid Content-Range", 1);
        }
        for range in
            ["bytes 8-15/372", "bytes 0-8/372", "bytes 0-6/372", "bytes 0-7/7", "bytes 0-0/0"]
        {
            check(error(move |_, _| partial(range, &FILE[..8])), "requested bytes 0-7", 1);
        }
        let last = u64::MAX;
        let range = format!("bytes 0-{last}/{last}");
        check(error(move |_, _| partial(&range, &FILE[..8])), "requested bytes 0-7", 1);
        let second = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => honest(FILE, "bytes=0-7"),
        });
        check(second, "requested bytes 8-", 2);
    }

    #[test]
    fn rejects_a_wrong_body() {
        check(error(|_, _| partial("bytes 0-7/372", &FILE[..7])), "8 bytes, but sent fewer", 1);
        check(error(|_, _| partial("bytes 0-7/372", FILE)), "8 bytes, but sent more", 1);
        let headers = ["Content-Range: bytes 0-7/372", "Content-Length: 8"];
        let cut = error(move |_, _| response("206 Partial Content", &headers, &FILE[..7]));
        check(cut, "broke off", 1);
        let headers = ["Content-Range: bytes 0-7/372", "Content-Encoding: gzip"];
        let coded = error(move |_, _| response("206 Partial Content", &headers, &FILE[..8]));
        check(coded, "encoding \"gzip\"", 1);
        // Far more than the connection's buffers hold, so the client has to hang up.
        let flood = vec![b' '; 64 << 20];
        check(error(move |_, _| partial("bytes 0-7/372", &flood)), "sent more", 1);
    }

    /// Returns a file with any header length and text, whether they match or not.
    fn file(len: u64, text: &str) -> Vec<u8> {
        [&len.to_le_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn rejects_a_wrong_header_length_before_fetching_the_header() {
        let too_large = file(HEADER_BYTES + 1, "{}");
        check(error(move |_, range| honest(&too_large, range)), "16777217", 1);
        let largest = file(u64::MAX, "{}");
        check(error(move |_, range| honest(&largest, range)), "header", 1);
        let truncated = file(3, "{}");
        check(error(move |_, range| honest(&truncated, range)), "truncated", 1);
        check(error(|_, range| honest(b"abcd", range)), "4 bytes", 1);
        check(error(|_, range| honest(b"<!DOCTYPE html>", range)), "HTML", 1);
    }

    #[test]
    fn rejects_a_file_that_changed() {
        let longer = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => honest(&[FILE, b"0"].concat(), range),
        });
        check(longer, "changed between requests", 2);
        let changed = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => {
                let response = String::from_utf8_lossy(&honest(FILE, range)).into_owned();
                response.replace("\"one\"", "\"two\"").into_bytes()
            }
        });
        check(changed, "changed between requests", 2);
        // The header accounts for every byte, so a file length that is wrong both times is found.
        let longer = error(|_, range| honest(&[FILE, b"0"].concat(), range));
        check(longer, "245", 2);
        let shorter = error(|_, range| honest(&FILE[..FILE.len() - 1], range));
        check(shorter, "truncated", 2);
    }

    #[test]
    fn escapes_control_characters_in_names() {
        let header = r#"{"\u001b[31m\u202e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
        let file = file(header.len() as u64, header);
        let server = Server::start(move |_, range| honest(&file, range));
        let listing = server.list(&limits()).unwrap();
        assert!(!listing.contains(['\u{1b}', '\u{202e}']), "{listing:?}");
        assert!(listing.contains(r"\u{1b}[31m"), "{listing}");
    }
}
