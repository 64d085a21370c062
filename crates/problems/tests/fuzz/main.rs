//! Damaged and hostile inputs to every reader and every checker: none panics, none hangs, none takes more memory than a
//! small multiple of what it was given. `RLEF_FUZZ_CASES=100000 cargo test --release -p rlef-problems --test fuzz` goes on
//! for longer than a usual run does.

mod memory;
mod samples;

use std::path::Path;
use std::time::Duration;

use memory::{alone, measured};
use proptest::prelude::*;
use proptest::sample::Index;
use rlef_problems::{Checker, Format, ImportOptions, Imported, Numbers, Sink, WhiteSpace, import};
use samples::{files, rows, samples, size};

/// What may be taken whatever the size: tables of the Parquet and YAML libraries, buffers.
const FIXED: usize = 8 << 20;
/// The bound of one problem in these tests; compressed files may swell to it.
const MOST: u64 = 1 << 20;
/// A machine with other things to do; what hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

struct Count(usize);

impl Sink for Count {
    fn problem(&mut self, _: Imported) -> std::io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

fn read(path: &Path, format: Option<Format>) -> usize {
    let options = ImportOptions {
        format,
        skip_bad: true,
        tuples_as_lists: true,
        max_problem_bytes: MOST,
        ..ImportOptions::default()
    };
    let mut count = Count(0);
    let _ = import(path, &options, &mut count, &mut |_| {});
    count.0
}

/// What is done to the bytes of a file.
#[derive(Debug, Clone)]
enum Damage {
    Set(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Repeat(Index, Index, usize),
    Remove(Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let special = prop::sample::select(vec![
        b"\0".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[[[[[[[[[[[[[[[[".to_vec(),
        b"{\"a\":".to_vec(),
        b"1e999".to_vec(),
        b"-99999999999999999999".to_vec(),
        b"\n---\n".to_vec(),
        b"&a [*a, *a, *a, *a]".to_vec(),
        b"../../".to_vec(),
        b"\\input{x}\\begin{y}".to_vec(),
        b"\"\\ud800\"".to_vec(),
        b"\r\n\r".to_vec(),
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), special).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), any::<Index>(), 1..2000_usize)
            .prop_map(|(a, b, times)| Damage::Repeat(a, b, times)),
        (any::<Index>(), 1..64_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            bytes.push(b'x');
        }
        let length = bytes.len();
        match self {
            Self::Set(at, byte) => bytes[at.index(length)] = *byte,
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Insert(at, more) => {
                let at = at.index(length);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Repeat(from, to, times) => {
                let (a, b) = (from.index(length), to.index(length));
                let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 64));
                let part = bytes[start..end].to_vec();
                bytes.splice(start..start, part.repeat(*times));
            }
            Self::Remove(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
        }
    }
}

fn cases() -> ProptestConfig {
    let asked = std::env::var("RLEF_FUZZ_CASES");
    let asked = asked.ok().and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(asked.unwrap_or(150))
}

#[test]
fn the_samples_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, format) in samples(folder.path()) {
        assert!(read(&path, Some(format)) > 0, "{}", path.display());
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn damaged_files_are_problems_or_errors(
        sample in any::<Index>(),
        file in any::<Index>(),
        damage in prop::collection::vec(damage(), 1..4),
        told in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let all = samples(folder.path());
        let (path, format) = &all[sample.index(all.len())];
        let parts = files(path);
        let part = &parts[file.index(parts.len())];
        let mut bytes = std::fs::read(part).expect("read");
        for one in &damage {
            one.apply(&mut bytes);
        }
        std::fs::write(part, &bytes).expect("written");
        let given = size(path);
        let _alone = alone();
        let (_, peak, time) = measured(|| read(path, told.then_some(*format)));
        // A file that is unpacked may take what one problem may, more than once on its way.
        let bound = FIXED + 24 * given + 8 * MOST as usize;
        prop_assert!(peak < bound, "{peak} bytes for {given} given: {}", path.display());
        prop_assert!(time < PATIENCE, "{time:?}: {}", path.display());
    }

    #[test]
    fn any_outputs_are_compared(expected in output(), got in output()) {
        for checker in checkers() {
            let same = checker.compare(&expected, &expected);
            prop_assert!(same.expect("it compares").is_same(), "{checker:?}: an output differs from itself");
            let one = checker.compare(&expected, &got).expect("it compares").is_same();
            let again = checker.compare(&expected, &got).expect("it compares").is_same();
            prop_assert_eq!(one, again);
        }
    }
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        prop::sample::select(vec![
            b"1".to_vec(),
            b"-0.0".to_vec(),
            b"1e999999999".to_vec(),
            b"nan".to_vec(),
            b"+.5e-3".to_vec(),
            b"\n".to_vec(),
            b"\r\n".to_vec(),
            b" ".to_vec(),
            b"\0".to_vec(),
            b"\xc3".to_vec(),
            b"YES".to_vec(),
            b"yes".to_vec(),
            vec![b'9'; 400],
        ]),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn checkers() -> Vec<Checker> {
    let near = |abs, integers_exact| Numbers {
        abs,
        rel: 1e-6,
        integers_exact,
    };
    let mut all = vec![Checker::Lines, Checker::Exact, Checker::code_contests()];
    for case_sensitive in [false, true] {
        all.push(Checker::AnyOrder { case_sensitive });
        all.push(Checker::Float {
            abs: 1e-3,
            rel: 1e-6,
            case_sensitive,
        });
        for white_space in [WhiteSpace::Lines, WhiteSpace::Any, WhiteSpace::Exact] {
            for numbers in [None, Some(near(0.0, true)), Some(near(1e9, false))] {
                all.push(Checker::Tokens {
                    case_sensitive,
                    white_space,
                    numbers,
                });
            }
        }
    }
    all.push(Checker::ByGroup {
        otherwise: Box::new(Checker::Lines),
        groups: [("a".to_owned(), Checker::Exact)].into(),
    });
    all
}

/// The hard cases for each: one long line, many short ones, one long token, nothing but line breaks, lines that all differ,
/// bytes of every kind.
#[test]
fn checkers_take_a_small_multiple_of_the_outputs() {
    const SIZE: usize = 4 << 20;
    let texts: [Vec<u8>; 6] = [
        b"1.5 ".repeat(SIZE / 4),
        b"7\n".repeat(SIZE / 2),
        vec![b'9'; SIZE],
        vec![b'\n'; SIZE],
        (0..SIZE / 8)
            .flat_map(|i| format!("{i:07}\n").into_bytes())
            .collect(),
        (0..SIZE).map(|i| (i * 31 % 256) as u8).collect(),
    ];
    let _alone = alone();
    for checker in checkers() {
        for (at, text) in texts.iter().enumerate() {
            let other = text.clone();
            let (found, peak, time) = measured(|| checker.compare(text, &other));
            assert!(found.expect("usable").is_same(), "{checker:?} {at}");
            assert!(
                peak < 16 * SIZE,
                "{checker:?} {at}: {peak} bytes for twice {SIZE}"
            );
            assert!(time < PATIENCE, "{checker:?} {at}: {time:?}");
        }
    }
}

/// Sets are read problem by problem: twenty times as many take no more memory.
#[test]
fn memory_does_not_grow_with_the_number_of_problems() {
    let folder = tempfile::tempdir().expect("a folder");
    let peak = |format: Format, row: &str, count: usize| {
        let file = folder
            .path()
            .join(format!("{}-{count}.jsonl", format.name()));
        std::fs::write(&file, row.repeat(count)).expect("written");
        let _alone = alone();
        let (_, peak, _) = measured(|| read(&file, Some(format)));
        peak
    };
    for (format, row) in rows() {
        let row = format!("{row}\n");
        let (few, many) = (peak(format, &row, 100), peak(format, &row, 2000));
        // Their ids are remembered, to tell of those that are there twice.
        assert!(
            many < few + 2000 * 400,
            "{}: {few} and {many}",
            format.name()
        );
    }
}
