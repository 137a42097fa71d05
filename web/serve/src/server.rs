//! A web server for a static folder, for trying the studio out and for its tests: files, to this machine alone.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A request's head is not longer.
const MOST: u64 = 16 * 1024;
/// Who says nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens at a port of this machine, any if it is 0; where, and the folder to be served.
pub fn listen(folder: &Path, port: u16) -> io::Result<(Server, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let address = listener.local_addr()?;
    Ok((Server { listener, folder: folder.into() }, address))
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    folder: Arc<Path>,
}

impl Server {
    /// Serves for ever.
    pub fn serve(self) {
        for stream in self.listener.incoming().flatten() {
            let folder = Arc::clone(&self.folder);
            std::thread::spawn(move || {
                // Whoever hangs up is not interested.
                let _ = answer(&folder, stream);
            });
        }
    }
}

fn answer(folder: &Path, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = BufReader::new(stream.try_clone()?.take(MOST)).lines();
    let first = head.next().transpose()?.unwrap_or_default();
    while head.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split(' ');
    let found = match (words.next(), words.next().and_then(|path| file(folder, path))) {
        (Some("GET"), Some(path)) => std::fs::read(&path).ok().map(|bytes| (kind(&path), bytes)),
        _ => None,
    };
    let (state, kind, bytes) = match found {
        Some((kind, bytes)) => ("200 OK", kind, bytes),
        None => ("404 Not Found", "text/plain", b"there is no such file".to_vec()),
    };
    // Also for the worker, which the policy in the page does not reach.
    let policy = if kind == "text/javascript" {
        "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'\r\n"
    } else {
        ""
    };
    write!(
        stream,
        "HTTP/1.1 {state}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\n{policy}Connection: close\r\n\r\n",
        bytes.len()
    )?;
    stream.write_all(&bytes)
}

/// The file of an address, if it is inside the folder.
fn file(folder: &Path, address: &str) -> Option<PathBuf> {
    let path = address.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = Path::new(if path.is_empty() { "index.html" } else { path });
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| folder.join(path))
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("csv") => "text/csv",
        _ => "application/octet-stream",
    }
}
