//! Serves the studio page to this machine: `cargo run --package querent-serve [PORT [FOLDER]]`.

mod server;

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = match arguments.first() {
        Some(port) => {
            port.parse().map_err(|_| format!("the port is {port}, but it must be a number up to 65535"))?
        }
        None => 8017,
    };
    let folder = Path::new(arguments.get(1).map_or("web/dist", String::as_str));
    if !folder.join("index.html").is_file() {
        return Err(
            format!("there is no page in {}: sh web/studio/build.sh makes it", folder.display()).into()
        );
    }
    let (server, address) = server::listen(folder, port)?;
    println!("http://{address}/");
    server.serve();
    Ok(())
}
