//! A small sample of every format that is read.

use std::path::{Path, PathBuf};

use rlef_problems::{CodeContestsWriter, Format, Problem};
use serde_json::{Value, json};

/// A problem with every kind of field.
fn problem(id: &str) -> Problem {
    let line = json!({
        "id": id, "statement": "Add two numbers.", "time_limit_s": 1.0, "memory_limit_mb": 64,
        "checker": {
            "kind": "by_group", "otherwise": {"kind": "lines"}, "groups": {"private": {"kind": "float", "abs": 0.1}},
        },
        "public_tests": [{"name": "a", "input": "1 2\n", "output": "3\n"}],
        "private_tests": [{"name": "private/b", "input": "1 5\n", "output": "6\n"}],
        "generated_tests": [{"name": "c", "input": "0 0\n", "output": "0\n"}],
        "solutions": [{
            "file": "a.py", "language": "python", "expected": "AC", "code": "print(sum(map(int, input().split())))",
        }],
        "wrong_solutions": [{
            "file": "b.cpp", "language": "cpp", "class": "zero", "expected": "WA", "code": "int main() {}",
        }],
    });
    serde_json::from_value(line).expect("a problem")
}

/// A row of each set of records.
pub fn rows() -> Vec<(Format, Value)> {
    let cases =
        |input: &str| json!([{"input": input, "output": "3\n", "testtype": "stdin"}]).to_string();
    let stdin = json!({"inputs": ["2\n", "3\n"], "outputs": ["4\n", "6\n"]}).to_string();
    vec![
        (
            Format::LiveCodeBench,
            json!({
                "question_title": "A. Sum", "question_content": "Add.", "platform": "codeforces", "question_id": "1_A",
                "contest_id": "1", "contest_date": "2023-08-21T00:00:00", "starter_code": "", "difficulty": "easy",
                "public_test_cases": cases("1 2\n"), "private_test_cases": cases("2 1\n"), "metadata": "{}",
            }),
        ),
        (
            Format::Apps,
            json!({
                "problem_id": 7, "question": "Double n.", "solutions": "[\"print(2 * int(input()))\"]",
                "input_output": stdin, "difficulty": "introductory", "url": "https://example.org/7", "starter_code": "",
            }),
        ),
        (
            Format::Taco,
            json!({
                "question": "Double n.", "solutions": "[\"print(2 * int(input()))\"]", "input_output": stdin,
                "difficulty": "EASY", "source": "codeforces", "url": "https://example.org/8", "starter_code": "",
                "time_limit": "2.0 seconds", "memory_limit": "256.0 megabytes", "skill_types": "[]", "tags": "[]",
            }),
        ),
        (
            Format::HumanEval,
            json!({
                "task_id": "HumanEval/0", "prompt": "def add(x, y):\n    \"\"\"Add.\"\"\"\n", "entry_point": "add",
                "canonical_solution": "    return x + y\n",
                "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate([1], [\"a\"]) == [1, \"a\"]\n",
            }),
        ),
        (
            Format::Mbpp,
            json!({
                "task_id": 2, "text": "Write a function to add.", "code": "def add(x, y):\n    return x + y\n",
                "test_list": ["assert add(1, 2) == 3", "assert add((1,), (2,)) == (1, 2)"], "test_setup_code": "",
                "challenge_test_list": [],
            }),
        ),
    ]
}

/// Files and folders, each with its format.
pub fn samples(folder: &Path) -> Vec<(PathBuf, Format)> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/packages");
    let mut all = Vec::new();
    for (format, row) in rows() {
        let file = folder.join(format!("{}.jsonl", format.name()));
        std::fs::write(&file, format!("{row}\n{row}\n")).expect("written");
        all.push((file, format));
    }
    let own = folder.join("own.jsonl");
    let lines = ["x", "y"].map(|id| serde_json::to_string(&problem(id)).expect("JSON") + "\n");
    std::fs::write(&own, lines.concat()).expect("written");
    all.push((own, Format::Jsonl));
    let parquet = folder.join("test.parquet");
    let mut writer = CodeContestsWriter::create(&parquet).expect("made");
    for id in ["x", "y"] {
        writer.write(&problem(id)).expect("written");
    }
    writer.finish().expect("finished");
    all.push((parquet, Format::CodeContests));
    for name in ["average", "any-order", "guess"] {
        let copy = folder.join(name);
        copy_folder(&packages.join(name), &copy);
        all.push((copy, Format::Package));
    }
    let plain = folder.join("plain");
    for (name, text) in [
        ("statement.md", "# Double\n\nDouble n.\n"),
        ("problem.json", "{\"time_limit_s\": 1.5}"),
        ("public/1.in", "1\n"),
        ("public/1.out", "2\n"),
        ("private/1.in", "2\n"),
        ("private/1.out", "4\n"),
        ("solutions/a.py", "print(2 * int(input()))\n"),
    ] {
        let path = plain.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    all.push((plain, Format::Folder));
    all
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in from.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let place = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &place);
        } else {
            std::fs::copy(path, place).expect("copied");
        }
    }
}

/// The files of a sample.
pub fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = path.read_dir().expect("a folder");
    let mut all: Vec<PathBuf> = entries
        .flat_map(|entry| files(&entry.expect("an entry").path()))
        .collect();
    all.sort();
    all
}

/// Their bytes together.
pub fn size(path: &Path) -> usize {
    let lengths = files(path)
        .into_iter()
        .map(|file| file.metadata().map_or(0, |known| known.len()));
    lengths.sum::<u64>() as usize
}
