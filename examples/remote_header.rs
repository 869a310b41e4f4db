//! Lists the tensors of a model on a server by two requests: one for the first 8 bytes, whose answer
//! also tells how long the file is, and one for the header. Of the data nothing is fetched.
//!
//! cargo run --example remote_header -- http://HOST/model.safetensors
//! cargo test --example remote_header
//!
//! The second line is a demonstration against servers of its own, honest and hostile ones. Plain http
//! alone is compiled in, to keep what this crate's developers build small: for https, which hubs of
//! models ask for, switch on ureq's feature `rustls`, with which nothing here has to change:
//! `ureq = { version = "3.2", default-features = false, features = ["rustls"] }`.
//!
//! A server is trusted with nothing. How long the header is gets checked before it is asked for, an
//! answer is read to the length that was asked for and not a byte further, and one that is another
//! range than that, or of another file than the answer before, is refused.

#![allow(clippy::restriction, clippy::pedantic)]

use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use safetensors_zero::{Frame, Header, Limits, Table};
use ureq::http::{header, HeaderMap, StatusCode};
use ureq::{Agent, ResponseExt as _};

const USAGE: &str = "usage: remote_header URL";

/// The largest header that is fetched. The largest of public models are a few MB.
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
    // A status is no error to the client, so that the sentence about it is ours.
    config.http_status_as_error(false).timeout_global(Some(Duration::from_secs(30)))
}

/// The tensors of a model, a line each.
fn list(agent: &Agent, url: &str, limits: &Limits) -> Result<String, String> {
    let first = fetch(agent, url, 0..8)?;
    let frame = Frame::parse(&first.bytes, first.file_len, limits).map_err(|e| e.to_string())?;
    let second = fetch(agent, &first.url, frame.header_range())?;
    if second.file_len != first.file_len || second.etag != first.etag {
        return Err(format!(
            "the server told of two files: one of {} bytes (ETag {}), then one of {} (ETag {})",
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
        // Offsets count from the data's begin; a request for the tensor needs those in the file.
        let (begin, end) = tensor.data_offsets;
        let (begin, end) = (frame.data_start() + begin, frame.data_start() + end);
        // Debug makes control characters of a stranger's name visible.
        listing += &format!("{:?} {} {} {begin}..{end}\n", tensor.name, tensor.dtype, tensor.shape);
    }
    let bytes_fetched = first.bytes.len() + second.bytes.len();
    let (count, file_len) = (table.len(), first.file_len);
    listing += &format!("{count} tensors, by {bytes_fetched} bytes of {file_len}\n");
    Ok(listing)
}

/// What a server answered to a request for a range.
struct Answer {
    /// The bytes asked for, as far as the file has them.
    bytes: Vec<u8>,
    file_len: u64,
    etag: Option<String>,
    /// Where the answer came from in the end, redirected.
    url: String,
}

/// Fetches a range of a file, or as much of it as there is.
fn fetch(agent: &Agent, url: &str, range: Range<u64>) -> Result<Answer, String> {
    let (begin, last) = (range.start, range.end - 1);
    let request = agent.get(url).header(header::RANGE, format!("bytes={begin}-{last}"));
    // A compressed answer would have offsets of its own.
    let request = request.header(header::ACCEPT_ENCODING, "identity");
    let mut response = request.call().map_err(|error| error.to_string())?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {}
        StatusCode::OK => {
            return Err(
                "the server does not answer requests for ranges: it sends the whole file".into()
            )
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Err(format!("the server says that the file has no bytes {begin}-{last}"))
        }
        status => return Err(format!("the server answers {status}")),
    }
    let file_len = check_range(response.headers(), &range)?;
    let etag = text(response.headers(), header::ETAG).map(str::to_owned);
    let url = response.get_uri().to_string();

    // One byte more than there should be would show that there are more. Memory grows with what
    // comes, not with what was announced.
    let expected = range.end.min(file_len) - begin;
    let mut bytes = Vec::new();
    let mut body = response.body_mut().as_reader().take(expected + 1);
    body.read_to_end(&mut bytes).map_err(|error| format!("the answer broke off: {error}"))?;
    if bytes.len() as u64 != expected {
        let sent = if bytes.len() as u64 > expected { "more" } else { "fewer" };
        return Err(format!("the server announced {expected} bytes, but sent {sent}"));
    }
    Ok(Answer { bytes, file_len, etag, url })
}

/// Checks that an answer is the range asked for, and tells how long the file is.
fn check_range(headers: &HeaderMap, asked: &Range<u64>) -> Result<u64, String> {
    if let Some(coding) = text(headers, header::CONTENT_ENCODING).filter(|c| *c != "identity") {
        return Err(format!("the server sends a range of a file coded as {coding:?}"));
    }
    let range = text(headers, header::CONTENT_RANGE)
        .ok_or("the server does not say which range it sends")?;
    let (first, last, file_len) = parse_range(range).ok_or_else(|| {
        format!("the server does not say which range of how many bytes: {range:?}")
    })?;
    let end = asked.end.min(file_len);
    if first != asked.start || last.checked_add(1) != Some(end) || end <= first {
        let (begin, last) = (asked.start, asked.end - 1);
        return Err(format!("asked for bytes {begin}-{last}, the server sends {range:?}"));
    }
    Ok(file_len)
}

/// `bytes 0-7/1234`: the first byte, the last, the length of the file.
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

    /// A server on this machine, on a thread of its own. Each connection is one request.
    struct Server {
        address: std::net::SocketAddr,
        /// The path and the `Range` of each request, in order.
        asked: Arc<Mutex<Vec<(String, String)>>>,
        thread: Option<JoinHandle<()>>,
    }

    impl Server {
        /// Answers by a function of the request's number, counted from 0, and its range.
        fn start(answer: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> Server {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let asked = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&asked);
            let thread = std::thread::spawn(move || {
                for (number, stream) in listener.incoming().enumerate() {
                    let mut stream = stream.unwrap();
                    let Some((path, range)) = read_request(&mut stream) else { break };
                    heard.lock().unwrap().push((path, range.clone()));
                    // The client may hang up before the end, and has to if there is none.
                    let _ = stream.write_all(&answer(number, &range));
                }
            });
            Server { address, asked, thread: Some(thread) }
        }

        fn list(&self, limits: &Limits) -> Result<String, String> {
            // Whatever proxy is set up here, this machine needs none.
            let config = configured(Agent::config_builder()).proxy(None);
            let url = format!("http://{}/model.safetensors", self.address);
            list(&config.build().new_agent(), &url, limits)
        }

        /// The ranges that were asked for.
        fn asked(&self) -> Vec<String> {
            self.asked.lock().unwrap().iter().map(|(_, range)| range.clone()).collect()
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            // A connection without a request ends the server.
            drop(TcpStream::connect(self.address));
            let ended = self.thread.take().unwrap().join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }

    /// The path of a request and the value of its `Range`, empty if it has none. `None` if there is
    /// no request.
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

    /// What an honest server answers to a request for a range of this file.
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

    /// A 206 with a range of its own words and all of a body.
    fn partial(range: &str, body: &[u8]) -> Vec<u8> {
        response("206 Partial Content", &[&format!("Content-Range: {range}")], body)
    }

    #[test]
    fn a_listing_takes_two_requests() {
        let server = Server::start(|_, range| honest(FILE, range));
        let listing = server.list(&limits()).unwrap();
        let lines: Vec<&str> = listing.lines().collect();
        let data_start = 8 + u64::from_le_bytes(*FILE.first_chunk().unwrap());
        assert_eq!(server.asked(), ["bytes=0-7", &format!("bytes=8-{}", data_start - 1)]);

        let tensors = safetensors_zero::SafeTensors::deserialize(FILE).unwrap();
        assert_eq!(lines.len(), tensors.len() + 1);
        for (line, (name, view)) in lines.iter().zip(&tensors) {
            let begin = view.data().as_ptr() as usize - FILE.as_ptr() as usize;
            let end = begin + view.data().len();
            let (dtype, shape) = (view.dtype(), view.shape());
            assert_eq!(*line, format!("{name:?} {dtype} {shape} {begin}..{end}"));
        }
        let fetched = format!("by {data_start} bytes of {}", FILE.len());
        assert!(lines.last().unwrap().ends_with(&fetched), "{listing}");
    }

    #[test]
    fn a_redirection_is_followed_once() {
        let server = Server::start(|number, range| match number {
            0 => response("302 Found", &["Location: /blob"], b""),
            _ => honest(FILE, range),
        });
        server.list(&limits()).unwrap();
        let asked = server.asked.lock().unwrap();
        let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/model.safetensors", "/blob", "/blob"]);
        assert_eq!((&asked[0].1, &asked[1].1), (&"bytes=0-7".into(), &"bytes=0-7".into()));
    }

    /// The error that such a server is, and how often it was asked.
    fn error(answer: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> (String, usize) {
        let server = Server::start(answer);
        let error = server.list(&limits()).unwrap_err();
        let asked = server.asked();
        assert_eq!(asked[0], "bytes=0-7");
        (error, asked.len())
    }

    fn check((error, asked): (String, usize), expected: &str, requests: usize) {
        assert!(error.contains(expected), "{error:?} for {expected:?}");
        assert_eq!(asked, requests, "{error}");
    }

    #[test]
    fn another_range_than_asked_for_is_refused() {
        let whole = || response("200 OK", &[&format!("Content-Length: {}", FILE.len())], FILE);
        check(error(move |_, _| whole()), "sends the whole file", 1);
        check(error(|_, _| response("404 Not Found", &[], b"<html>")), "404 Not Found", 1);
        check(error(|_, range| honest(b"", range)), "has no bytes 0-7", 1);
        check(error(|_, _| response("206 Partial Content", &[], &FILE[..8])), "which range", 1);
        for range in ["bytes 0-7/*", "bytes */372", "0-7/372", "bytes 0-7", "bytes 0-7/-1"] {
            check(error(move |_, _| partial(range, &FILE[..8])), "which range of how many", 1);
        }
        for range in
            ["bytes 8-15/372", "bytes 0-8/372", "bytes 0-6/372", "bytes 0-7/7", "bytes 0-0/0"]
        {
            check(error(move |_, _| partial(range, &FILE[..8])), "asked for bytes 0-7", 1);
        }
        let last = u64::MAX;
        let range = format!("bytes 0-{last}/{last}");
        check(error(move |_, _| partial(&range, &FILE[..8])), "asked for bytes 0-7", 1);
        let second = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => honest(FILE, "bytes=0-7"),
        });
        check(second, "asked for bytes 8-", 2);
    }

    #[test]
    fn other_bytes_than_announced_are_refused() {
        check(error(|_, _| partial("bytes 0-7/372", &FILE[..7])), "8 bytes, but sent fewer", 1);
        check(error(|_, _| partial("bytes 0-7/372", FILE)), "8 bytes, but sent more", 1);
        let headers = ["Content-Range: bytes 0-7/372", "Content-Length: 8"];
        let cut = error(move |_, _| response("206 Partial Content", &headers, &FILE[..7]));
        check(cut, "broke off", 1);
        let headers = ["Content-Range: bytes 0-7/372", "Content-Encoding: gzip"];
        let coded = error(move |_, _| response("206 Partial Content", &headers, &FILE[..8]));
        check(coded, "coded as \"gzip\"", 1);
        // Far more than would fit the connection's buffers: the client hangs up.
        let flood = vec![b' '; 64 << 20];
        check(error(move |_, _| partial("bytes 0-7/372", &flood)), "sent more", 1);
    }

    /// A file with this length before the text, whatever its length is.
    fn file(len: u64, text: &str) -> Vec<u8> {
        [&len.to_le_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn a_length_that_lies_is_found_before_anything_is_fetched() {
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
    fn another_file_than_before_is_refused() {
        let longer = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => honest(&[FILE, b"0"].concat(), range),
        });
        check(longer, "told of two files", 2);
        let changed = error(|number, range| match number {
            0 => honest(FILE, range),
            _ => {
                let answer = String::from_utf8_lossy(&honest(FILE, range)).into_owned();
                answer.replace("\"one\"", "\"two\"").into_bytes()
            }
        });
        check(changed, "told of two files", 2);
        // A length that is wrong each time shows in the header, which accounts for every byte.
        let longer = error(|_, range| honest(&[FILE, b"0"].concat(), range));
        check(longer, "goes on to 245", 2);
        let shorter = error(|_, range| honest(&FILE[..FILE.len() - 1], range));
        check(shorter, "truncated", 2);
    }

    #[test]
    fn names_of_strangers_are_made_visible() {
        let header = r#"{"\u001b[31m\u202e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
        let stranger = file(header.len() as u64, header);
        let server = Server::start(move |_, range| honest(&stranger, range));
        let listing = server.list(&limits()).unwrap();
        assert!(!listing.contains(['\u{1b}', '\u{202e}']), "{listing:?}");
        assert!(listing.contains(r"\u{1b}[31m"), "{listing}");
    }
}
