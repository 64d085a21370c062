//! The class that a Java program starts with. Judges run programs whose main class has any name and lies in any package;
//! a class that is public must stand in a file of its own name.

/// Where a program starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MainClass {
    /// With its package.
    pub(super) name: String,
    /// The name of the file that the text must stand in, without its ending.
    pub(super) file: String,
}

/// The text of a class that starts the program.
pub(super) fn starting(class: &str, main: &MainClass) -> String {
    let name = &main.name;
    let call = match name.contains('.') {
        false => format!("{name}.main(arguments);"),
        // A class that is not public can be called from its own package only, or so.
        true => format!(
            "java.lang.reflect.Method main = Class.forName(\"{name}\").getMethod(\"main\", String[].class); \
             main.setAccessible(true); try {{ main.invoke(null, (Object) arguments); }} \
             catch (java.lang.reflect.InvocationTargetException thrown) {{ throw thrown.getCause(); }}"
        ),
    };
    format!(
        "public class {class} {{ public static void main(String[] arguments) throws Throwable {{ {call} }} }}\n"
    )
}

/// Words that begin a type.
const TYPES: [&str; 4] = ["class", "interface", "enum", "record"];

/// The main class of a text, if it has one that is not what `expected` says.
pub(super) fn main_class(text: &str, expected: &str) -> Option<MainClass> {
    let tokens = tokens(text);
    let mut package = String::new();
    let mut public = None;
    let mut main: Option<&str> = None;
    let mut depth = 0_usize;
    let mut modifiers = 0;
    let mut current = None;
    let mut has_expected = false;
    for (at, token) in tokens.iter().enumerate() {
        let word = |ahead: usize| tokens.get(at + ahead).copied().unwrap_or_default();
        match *token {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                modifiers = at + 1;
            }
            ";" => modifiers = at + 1,
            "package" if depth == 0 && package.is_empty() => {
                let names = tokens.iter().skip(at + 1).take_while(|t| **t != ";");
                package = names.copied().collect();
            }
            kind if depth == 0 && TYPES.contains(&kind) && is_name(word(1)) => {
                current = Some(word(1));
                has_expected |= word(1) == expected;
                let before = tokens.get(modifiers..at).unwrap_or_default();
                if before.contains(&"public") {
                    public = current;
                }
            }
            "main" if depth == 1 && word(1) == "(" => {
                let before = tokens.get(modifiers..at).unwrap_or_default();
                if before.ends_with(&["void"])
                    && before.contains(&"static")
                    && (main.is_none() || current == public)
                {
                    main = current;
                }
            }
            _ => {}
        }
        if *token == "{" {
            modifiers = at + 1;
        }
    }
    // A public class may have inherited its `main`.
    let class = main.or(public)?;
    let name = match package.as_str() {
        "" => class.to_owned(),
        package => format!("{package}.{class}"),
    };
    let file = public.unwrap_or(class);
    // It may have inherited its `main`.
    let as_expected = has_expected && package.is_empty();
    (!as_expected).then(|| MainClass {
        name,
        file: file.to_owned(),
    })
}

fn is_name(token: &str) -> bool {
    let mut chars = token.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
}

/// Words and single characters; without comments, and with nothing in place of literals.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let starts = |at: usize, what: &str| text.get(at..).is_some_and(|rest| rest.starts_with(what));
    let after = |at: usize, what: &str| {
        let found = text.get(at..).and_then(|rest| rest.find(what));
        found.map_or(bytes.len(), |found| at + found + what.len())
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let in_word =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        let end = match *byte {
            _ if starts(at, "//") => after(at, "\n"),
            _ if starts(at, "/*") => after(at + 2, "*/"),
            _ if starts(at, "\"\"\"") => after(at + 3, "\"\"\""),
            quote @ (b'"' | b'\'') => {
                let mut end = at + 1;
                while let Some(byte) = bytes.get(end).filter(|b| **b != quote && **b != b'\n') {
                    end += if *byte == b'\\' { 2 } else { 1 };
                }
                end + 1
            }
            byte if in_word(byte) => {
                let rest = bytes.get(at..).unwrap_or_default();
                let end = at + rest.iter().take_while(|b| in_word(**b)).count();
                found.extend(text.get(at..end));
                end
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    found.extend(text.get(at..=at));
                }
                at + 1
            }
        };
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, String)> {
        main_class(text, "Main").map(|main| (main.name, main.file))
    }

    fn named(name: &str, file: &str) -> Option<(String, String)> {
        Some((name.into(), file.into()))
    }

    #[test]
    fn programs_start_where_their_authors_say() {
        let main = "public static void main(String[] args) { }";
        assert_eq!(found(&format!("public class Main {{ {main} }}")), None);
        assert_eq!(
            found(&format!(
                "class Main {{ {main} }} class A {{ void main() {{}} }}"
            )),
            None
        );
        let other = format!(
            "import java.util.*;\n@SuppressWarnings(\"x\") public final class abc_JK {{ {main} }}"
        );
        assert_eq!(found(&other), named("abc_JK", "abc_JK"));
        let packaged =
            "package a.b ;\nclass Foo { int x; static public void main(String... a) {} }";
        assert_eq!(found(packaged), named("a.b.Foo", "Foo"));
        // The public class is that of the file, also when another one is the main class.
        let two = format!("public class Node {{ }} class Run {{ {main} }}");
        assert_eq!(found(&two), named("Run", "Node"));
        let both = format!("class A {{ {main} }} public class B {{ {main} }} class C {{ {main} }}");
        assert_eq!(found(&both), named("B", "B"));
        let hidden = format!(
            "/* public class X {{ {main} }} */ // class Y {{ {main} }}\nclass Z {{ String s = \"class Q {{ \\\" {main}\"; \
             char c = '\\''; class Inner {{ {main} }} {main} }}"
        );
        assert_eq!(found(&hidden), named("Z", "Z"));
        assert_eq!(found("class A { void main() {} }"), None);
        assert_eq!(
            found(&format!(
                "class A {{ {main} }} public class Main extends A {{ }}"
            )),
            None
        );
        assert_eq!(
            found("public class Late extends Base {} "),
            named("Late", "Late")
        );
        assert_eq!(
            found("package p; public class Main { public static void main(String[] a) {} }"),
            named("p.Main", "Main")
        );
    }

    #[test]
    fn texts_of_every_kind_have_an_end() {
        for text in [
            "",
            "\"",
            "'\\",
            "/*",
            "//",
            "\"\"\"",
            "class",
            "public class",
            "}}}{",
            "é class ü { static void main(",
        ] {
            found(text);
        }
    }
}
