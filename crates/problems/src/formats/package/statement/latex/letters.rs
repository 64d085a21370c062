//! Letters and signs that LaTeX has commands for.

use super::Cursor;

/// Accents and the marks that Unicode puts after the letter.
const ACCENTS: [(&str, char); 12] = [
    ("'", '\u{301}'),
    ("`", '\u{300}'),
    ("^", '\u{302}'),
    ("\"", '\u{308}'),
    ("~", '\u{303}'),
    ("=", '\u{304}'),
    (".", '\u{307}'),
    ("c", '\u{327}'),
    ("v", '\u{30c}'),
    ("u", '\u{306}'),
    ("H", '\u{30b}'),
    ("r", '\u{30a}'),
];

/// Letters with accents that have a character of their own.
const COMPOSED: &str = "áa\u{301} ée\u{301} íi\u{301} óo\u{301} úu\u{301} ýy\u{301} ÁA\u{301} ÉE\u{301} ÍI\u{301} ÓO\u{301} ÚU\u{301} \
    àa\u{300} èe\u{300} ìi\u{300} òo\u{300} ùu\u{300} ÀA\u{300} ÈE\u{300} âa\u{302} êe\u{302} îi\u{302} ôo\u{302} ûu\u{302} \
    äa\u{308} ëe\u{308} ïi\u{308} öo\u{308} üu\u{308} ÄA\u{308} ËE\u{308} ÖO\u{308} ÜU\u{308} ãa\u{303} ñn\u{303} õo\u{303} ÑN\u{303} \
    çc\u{327} ÇC\u{327} şs\u{327} čc\u{30c} ďd\u{30c} ěe\u{30c} ňn\u{30c} řr\u{30c} šs\u{30c} ťt\u{30c} žz\u{30c} ČC\u{30c} ŘR\u{30c} \
    ŠS\u{30c} ŽZ\u{30c} ăa\u{306} ğg\u{306} őo\u{30b} űu\u{30b} åa\u{30a} ÅA\u{30a} ůu\u{30a} āa\u{304} ēe\u{304} īi\u{304} ōo\u{304} \
    ūu\u{304} żz\u{307} ćc\u{301} ńn\u{301} śs\u{301} źz\u{301} ŚS\u{301}";

/// The letter with the accent of that name, if it is one.
pub(super) fn accent(name: &str, cursor: &mut Cursor<'_>) -> Option<String> {
    let (_, mark) = ACCENTS.into_iter().find(|(known, _)| *known == name)?;
    let letter = match cursor.argument() {
        Some(letter) => letter.trim().to_owned(),
        // A letter as the name of an accent needs braces or a blank, which is gone.
        None => cursor.next().map(String::from).unwrap_or_default(),
    };
    let letter = if letter.starts_with('\\') {
        letter.trim_start_matches('\\').to_owned()
    } else {
        letter
    };
    let mut letters = letter.chars();
    let Some(first) = letters.next() else {
        return Some(String::new());
    };
    let both = format!("{first}{mark}");
    let composed = COMPOSED.split_whitespace().find_map(|entry| {
        let mut chars = entry.chars();
        let whole = chars.next()?;
        (chars.as_str() == both).then(|| whole.to_string())
    });
    Some(format!("{}{}", composed.unwrap_or(both), letters.as_str()))
}

/// What a command without arguments stands for in text.
pub(super) fn symbol(name: &str) -> Option<&'static str> {
    Some(match name {
        "%" => "%",
        "&" => "&",
        "_" => "_",
        "#" => "#",
        "$" => "$",
        "{" => "{",
        "}" => "}",
        " " | "\n" | "," | ";" | ":" | "quad" | "qquad" | "space" => " ",
        "ldots" | "dots" | "cdots" | "textellipsis" => "...",
        "textbackslash" | "backslash" => "\\",
        "textasciitilde" => "~",
        "textasciicircum" => "^",
        "textunderscore" => "_",
        "textless" => "<",
        "textgreater" => ">",
        "textbar" => "|",
        "textquotedbl" => "\"",
        "leq" | "le" => "<=",
        "geq" | "ge" => ">=",
        "neq" | "ne" => "!=",
        "times" => "×",
        "cdot" => "·",
        "pm" => "±",
        "to" | "rightarrow" => "→",
        "ss" => "ß",
        "o" => "ø",
        "O" => "Ø",
        "aa" => "å",
        "AA" => "Å",
        "ae" => "æ",
        "AE" => "Æ",
        "oe" => "œ",
        "OE" => "Œ",
        "l" => "ł",
        "L" => "Ł",
        "i" => "i",
        "j" => "j",
        "euro" | "texteuro" => "€",
        "pounds" => "£",
        "copyright" => "©",
        "S" => "§",
        "degree" | "textdegree" => "°",
        "LaTeX" => "LaTeX",
        "TeX" => "TeX",
        "nextsample" | "remainingsamples" => "",
        _ => return None,
    })
}

/// Signs stand between words; letters within them.
pub(super) fn is_sign(name: &str) -> bool {
    matches!(
        name,
        "ldots"
            | "dots"
            | "cdots"
            | "leq"
            | "le"
            | "geq"
            | "ge"
            | "neq"
            | "ne"
            | "times"
            | "cdot"
            | "pm"
            | "to"
            | "rightarrow"
    )
}
