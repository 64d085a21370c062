//! Names that a Python program can define.

use unicode_normalization::UnicodeNormalization as _;

/// Words that are no names (Python 3.8 to 3.14); of the words that only sometimes are more than names, none.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Why no program can have something of this name, if so: it would be charged to all of them.
pub(super) fn unusable(name: &str) -> Option<String> {
    if KEYWORDS.contains(&name) {
        return Some(format!(
            "`{name}` is a keyword of Python, and nothing can have its name"
        ));
    }
    let mut chars = name.chars();
    let starts = chars
        .next()
        .is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c));
    if !starts || !chars.all(unicode_ident::is_xid_continue) {
        return Some(format!("{name:?} is not a name"));
    }
    // Python takes names in this form: what a program calls by the other it defines by this one.
    let plain: String = name.nfkc().collect();
    (plain != name).then(|| format!("{name:?} is `{plain}` to Python; write that"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_program_can_define_are_refused() {
        for name in ["f", "_", "solve2", "größe", "名前", "match", "print"] {
            assert_eq!(unusable(name), None, "{name}");
        }
        for (name, why) in [
            ("class", "keyword"),
            ("None", "keyword"),
            ("", "not a name"),
            ("2x", "not a name"),
            ("x²", "not a name"),
            ("a b", "not a name"),
            ("a-b", "not a name"),
            ("ﬁnd", "`find`"),
            ("ｆ", "`f`"),
        ] {
            assert!(unusable(name).is_some_and(|s| s.contains(why)), "{name}");
        }
    }
}
