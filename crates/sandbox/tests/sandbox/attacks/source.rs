//! Hostile source text: attacks on the compiler and on whatever reads, keeps or shows a program. Row 63 of the
//! catalogue and more of its kind. Each is run, and given to the compiler alone.

use rlef_sandbox::Ending;

use super::{Arena, attack, stage_group};

#[test]
fn hostile_source_text_is_the_programs_failure() {
    stage_group("source");
}

/// The compiler says no: at once, by its memory, or by its time; or crashes.
const NO: &[Ending] = &[
    Ending::Exited(1),
    Ending::MemoryLimit,
    Ending::CpuLimit,
    Ending::Signalled(11),
    Ending::Signalled(6),
];
/// As the version of Python has it.
const EITHER: &[Ending] = &[
    Ending::Exited(0),
    Ending::Exited(1),
    Ending::MemoryLimit,
    Ending::CpuLimit,
    Ending::Signalled(11),
    Ending::Signalled(6),
];
const FINE: &[Ending] = &[Ending::Exited(0)];

pub(super) fn all(arena: &Arena) {
    let nested = |open: &str, close: &str, n: usize| open.repeat(n) + "1" + &close.repeat(n);
    let blocks: String = (0..150)
        .map(|i| format!("{}if 1:\n", " ".repeat(i)))
        .collect();
    let chain = format!("x = a{}", ".b".repeat(200_000));
    let calls = format!("x = a{}", "()".repeat(200_000));
    let lambdas = format!("x = {}1", "lambda: ".repeat(50_000));
    let sources: Vec<(&str, String, &[Ending])> = vec![
        ("parentheses", nested("(", ")", 100_000), NO),
        ("brackets", nested("[", "]", 100_000), NO),
        ("braces", nested("{1:", "}", 100_000), NO),
        ("unclosed", "[{(".repeat(50_000), NO),
        ("unary minus", nested("-", "", 50_000), NO),
        ("not", nested("not ", "", 50_000), NO),
        ("powers", format!("x = {}1", "1**".repeat(50_000)), NO),
        (
            "comparisons",
            format!("x = {}1", "1<".repeat(300_000)),
            EITHER,
        ),
        ("sums", format!("x = {}1", "1+".repeat(300_000)), NO),
        ("attributes", chain, NO),
        ("calls", calls, NO),
        ("lambdas", lambdas, NO),
        (
            "conditional expressions",
            format!("x = {}1", "1 if 1 else ".repeat(50_000)),
            NO,
        ),
        ("comprehensions", nested("[x for x in ", "]", 1000), NO),
        ("blocks", blocks + &" ".repeat(150) + "pass", NO),
        (
            "loops",
            (0..30)
                .map(|i| format!("{}while 1:\n", " ".repeat(i)))
                .collect::<String>()
                + &" ".repeat(30)
                + "break",
            NO,
        ),
        (
            "else if",
            format!("if 0: pass\n{}", "elif 0: pass\n".repeat(100_000)),
            EITHER,
        ),
        (
            "f-strings in f-strings",
            (0..400).fold("1".into(), |s: String, i| {
                format!("f{0}{{{s}}}{0}", ["'", "\"", "'''", "\"\"\""][i % 4])
            }),
            EITHER,
        ),
        (
            "format specifications in each other",
            format!("f'{{1:{}}}'", "{1:".repeat(200) + &"}".repeat(200)),
            NO,
        ),
        (
            "patterns",
            format!("match 1:\n case {}:\n  pass", nested("[", "]", 50_000)),
            NO,
        ),
        ("folded repetition", "x = 'x' * 10 ** 9".into(), EITHER),
        (
            "folded repetition of a tuple",
            "x = ((1,) * 255,) * 255 * 10 ** 9".into(),
            EITHER,
        ),
        ("folded power", "x = 10 ** 10 ** 8".into(), EITHER),
        (
            "folded powers of powers",
            "x = 2 ** 127 ** 127 ** 127 ** 127".into(),
            EITHER,
        ),
        ("folded shift", "x = 1 << 10 ** 10".into(), EITHER),
        ("folded format", "x = '%*d' % (10 ** 9, 1)".into(), EITHER),
        (
            "a number of a million digits",
            format!("x = {}", "9".repeat(1_000_000)),
            EITHER,
        ),
        (
            "a number of a million hexadecimal digits",
            format!("x = 0x{}", "f".repeat(1_000_000)),
            FINE,
        ),
        (
            "a number of a million digits with a fraction",
            format!("x = 1e{}", "9".repeat(1_000_000)),
            FINE,
        ),
        (
            "a name of a megabyte",
            format!("{} = 1", "x".repeat(1 << 20)),
            FINE,
        ),
        (
            "a line of eight megabytes",
            format!("x = '{}'", "x".repeat(8 << 20)),
            FINE,
        ),
        ("a million lines", "\n".repeat(1_000_000), FINE),
        ("a million comments", "#\n".repeat(1_000_000), FINE),
        (
            "two hundred thousand statements",
            "x=1\n".repeat(200_000),
            EITHER,
        ),
        (
            "a million continued lines",
            "\\\n".repeat(1_000_000),
            EITHER,
        ),
        (
            "a hundred thousand names",
            (0..100_000).map(|i| format!("x{i}=1\n")).collect(),
            EITHER,
        ),
        (
            "a hundred thousand arguments",
            format!(
                "def f({}): pass",
                (0..100_000).map(|i| format!("a{i},")).collect::<String>()
            ),
            EITHER,
        ),
        (
            "a hundred thousand functions",
            "def f(): pass\n".repeat(100_000),
            EITHER,
        ),
        (
            "decorators",
            format!("{}def f(): pass", "@int\n".repeat(50_000)),
            EITHER,
        ),
        ("NUL", "print(1)\0print(2)".into(), NO),
        ("NUL in a comment", "#\0\nprint(2)".into(), NO),
        (
            "form feeds and tabs",
            "if 1:\n\x0c\tx = 1\n        y = 2".into(),
            EITHER,
        ),
        (
            "carriage returns",
            "x = 1\ry = 2\r\nz = 3\rassert x + y + z == 6".into(),
            FINE,
        ),
        (
            "text that shows another order",
            "x = '\u{202e}' # \u{2066}\nprint(end='')".into(),
            FINE,
        ),
        (
            "names that look alike",
            "\u{ff50}\u{ff52}\u{ff49}\u{ff4e}\u{ff54}(end='')".into(),
            FINE,
        ),
        ("noncharacters", "'\u{ffff}\u{10ffff}\u{fdd0}'".into(), FINE),
        ("a byte-order mark", "\u{feff}x = 1".into(), FINE),
        ("two byte-order marks", "\u{feff}\u{feff}x = 1".into(), NO),
        (
            "escapes of half characters",
            "x = '\\ud800\\udfff\\N{BELL}'".into(),
            FINE,
        ),
        (
            "escapes that are none",
            "x = '\\N{no such name}'".into(),
            NO,
        ),
        ("coding latin-1", "# coding: latin-1\nx = 'ž'".into(), FINE),
        ("coding ascii", "# coding: ascii\nx = 'ž'".into(), NO),
        ("coding utf-16", "# coding: utf-16\nx = 1".into(), NO),
        (
            "coding utf-7",
            "# coding: utf-7\n+AHAAcgBpAG4AdA-(end='')".into(),
            EITHER,
        ),
        (
            "coding unicode_escape",
            "# coding: unicode_escape\n# \\u000aprint(end='')".into(),
            EITHER,
        ),
        ("coding idna", "# coding: idna\nx = 1".into(), EITHER),
        (
            "coding punycode",
            "# coding: punycode\nx = 1".into(),
            EITHER,
        ),
        ("coding undefined", "# coding: undefined\nx = 1".into(), NO),
        ("coding zlib", "# coding: zlib_codec\nx = 1".into(), NO),
        ("coding rot13", "# coding: rot13\ncevag(1)".into(), NO),
        (
            "coding by path",
            "# coding: ../../tmp/main\nx = 1".into(),
            NO,
        ),
        (
            "coding twice",
            "# coding: utf-8\n# coding: latin-1\nx = 'ž'".into(),
            FINE,
        ),
        (
            "coding against the mark",
            "\u{feff}# coding: latin-1\nx = 'ž'".into(),
            NO,
        ),
        ("future", "from __future__ import braces".into(), NO),
        (
            "barry",
            "from __future__ import barry_as_FLUFL\nx = 1 <> 2".into(),
            EITHER,
        ),
        ("debug", "__debug__ = 1".into(), NO),
        ("a thousand warnings", "x = 1 is 1\n".repeat(1000), FINE),
        ("star imports", "from os import *\n".repeat(1000), FINE),
        ("unpacking", format!("{}x = 1", "*a, ".repeat(300)), NO),
    ];
    // One honest look for several of them: the compiler has no way to leave anything, and there are many.
    for (at, (name, source, wanted)) in sources.into_iter().enumerate() {
        let cpu = if wanted == FINE { 4000 } else { 400 };
        let attack = attack(name, source, wanted).cpu(cpu).memory(128 << 20);
        let outcome = if at % 4 == 0 {
            arena.stage(&attack)
        } else {
            arena.run(&attack)
        };
        let said = crate::text(&outcome.stderr[..outcome.stderr.len().min(2000)]);
        arena.expect(wanted.contains(&outcome.ending), || {
            format!("{name}: {:?} {said}", outcome.ending)
        });
        arena.expect(outcome.stdout.is_empty() && !said.contains("boot"), || {
            format!("{name}: {:?} {said}", crate::text(&outcome.stdout))
        });
        // The compiler alone comes to the same result, where that is not a matter of how long it took.
        let compiles = arena.check(&attack).is_none();
        let right = if wanted == FINE { compiles } else { !compiles };
        arena.expect(right || wanted == EITHER, || {
            format!("{name} compiles: {compiles}")
        });
    }
    arena.nothing_is_left("hostile source text");
}
