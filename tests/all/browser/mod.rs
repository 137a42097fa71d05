//! Chromium without a window, spoken to through its debugging pipe: one page, one process. It is Debian's package,
//! or what `QUERENT_BROWSER` names. Without one, tests are skipped, aloud, unless `QUERENT_GPU` is `require` as in
//! `tests/run.sh`, which installs it.

use crate::common::TempDir;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// After this long without a word the browser is taken for dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// What it has told by itself.
    pub events: Vec<Value>,
    _profile: TempDir,
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("QUERENT_BROWSER") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

impl Browser {
    /// A browser that cannot reach any network; `None` if there is none and that is allowed.
    pub fn start(name: &str) -> Option<Self> {
        let mut browser =
            Self::start_with(name, &["--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"])?;
        let offline =
            json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        browser.call("Network.emulateNetworkConditions", offline);
        Some(browser)
    }

    /// A browser that can reach this machine and nothing else, with WebGPU by its software adapter or without.
    pub fn start_local(name: &str, has_webgpu: bool) -> Option<Self> {
        let gpu = if has_webgpu { "--enable-unsafe-webgpu" } else { "--disable-gpu" };
        let mut browser =
            Self::start_with(name, &[gpu, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])?;
        let workers = json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        browser.call("Target.setAutoAttach", workers);
        Some(browser)
    }

    fn start_with(name: &str, flags: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            let required = std::env::var("QUERENT_GPU").is_ok_and(|value| value == "require");
            assert!(!required, "there is no chromium: sh tests/run.sh installs it");
            eprintln!("SKIPPED: {name}: there is no chromium");
            return None;
        };
        let profile = TempDir::new(&format!("browser-{name}"));
        // The pipe is at 3 and 4; what else it says goes nowhere.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args(["--disable-extensions", "--hide-scrollbars"])
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.0.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let (to, out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (heard, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON");
                if heard.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser =
            Self { child, to, from, calls: 0, session: None, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// What an expression is in the page's first worker.
    pub fn eval_in_worker(&mut self, expression: &str) -> Value {
        let worker = self.workers().first().cloned().expect("there is a worker");
        let own = self.session.replace(worker);
        let value = self.eval(expression);
        self.session = own;
        value
    }

    /// Listens to the page's workers as well: what they complain about, also before now, and what they ask for from now on.
    pub fn listen_to_workers(&mut self) {
        let sessions = self.workers();
        assert!(!sessions.is_empty(), "there is no worker");
        for worker in sessions {
            let own = self.session.replace(worker);
            self.call("Runtime.enable", json!({}));
            self.call("Network.enable", json!({}));
            self.session = own;
        }
    }

    /// The sessions of the page's workers, those that have ended left out.
    fn workers(&self) -> Vec<String> {
        let is_worker = |event: &&Value| {
            event["method"] == "Target.attachedToTarget" && event["params"]["targetInfo"]["type"] == "worker"
        };
        let session = |event: &Value| event["params"]["sessionId"].as_str().map(String::from);
        let is_over = |session: &String| {
            let of = |event: &&Value| event["params"]["sessionId"] == session.as_str();
            self.events.iter().filter(of).any(|event| event["method"] == "Target.detachedFromTarget")
        };
        let sessions = self.events.iter().filter(is_worker).filter_map(session);
        sessions.filter(|session| !is_over(session)).collect()
    }

    /// Calls a method of the browser, and waits for what it gives.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        write!(self.to, "{message}\0").and_then(|()| self.to.flush()).expect("the browser listens");
        loop {
            let mut heard =
                self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if heard["id"] == self.calls {
                assert!(heard["error"].is_null(), "{method}: {}", heard["error"]);
                return heard["result"].take();
            }
            self.events.push(heard);
        }
    }

    /// Opens a file.
    pub fn open(&mut self, path: &Path) {
        self.go_to(&format!("file://{}", path.display()));
    }

    /// Opens an address.
    pub fn go_to(&mut self, address: &str) {
        let opened = self.call("Page.navigate", json!({ "url": address }));
        assert!(opened["errorText"].is_null(), "{opened}");
        self.wait("document.readyState === 'complete'");
    }

    /// What an expression is in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        let mut done = self.call("Runtime.evaluate", asked);
        assert!(done["exceptionDetails"].is_null(), "{expression}: {}", done["exceptionDetails"]);
        done["result"]["value"].take()
    }

    /// What an expression is in the page, as text.
    pub fn text(&mut self, expression: &str) -> String {
        match self.eval(expression) {
            Value::String(text) => text,
            other => panic!("{expression} is {other}"),
        }
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        for _ in 0..1200 {
            if self.eval(expression) == true {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let page = self.eval("document.body.innerText");
        panic!("{expression} does not become true; the page says {page}");
    }

    /// Presses a key by its name, or types a text.
    pub fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            "ArrowLeft" => (37, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            _ => panic!("no key {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if !text.is_empty() && kind == "keyDown" {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text where the focus is.
    pub fn type_in(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The size of the window in pixels, and whether it is dark.
    pub fn look(&mut self, width: u32, height: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" }
        ] });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Errors and warnings: of scripts, of the console, and what the content security policy has refused.
    pub fn complaints(&self) -> Vec<&Value> {
        let is_bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        self.events.iter().filter(is_bad).collect()
    }

    /// The addresses that the page has asked for.
    pub fn requests(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when the pipe does; if not, it is ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
