use super::*;
use proptest::prelude::*;

fn text(source: &str) -> String {
    to_markdown(source).text
}

#[test]
fn a_statement_reads_well() {
    let source = r#"\problemname{Sorting \& Searching}
% a remark
\newcommand{\maxn}{10^5}
\illustration{0.3}{pic.jpg}{A pile, by \href{https://example.org/a_b}{someone}}
Given $n$ numbers ($1 \leq n \leq \maxn$), ``sort'' them~-- 100\% of \emph{them}.% no blank

\section*{Input}
The input has:
\begin{itemize}
  \item one line with \texttt{n},
  \item one line with
    $n$ numbers:
  \begin{enumerate}
    \item first
    \item second
  \end{enumerate}
\end{itemize}
\section*{Output}
\begin{verbatim}
a % b \item
  c
\end{verbatim}
\begin{tabular}{|c|l|}
\hline
a & b \\ \hline
1 \& 2 & $x$ \\
\end{tabular}

G\"odel, na\"{\i}ve, Erd\H{o}s, \O re, stra\ss e, \ldots \textbf{end}\footnote{really}. \unknown{kept}
\[ a = b \]
"#;
    let markdown = to_markdown(source);
    assert_eq!(markdown.title.as_deref(), Some("Sorting & Searching"));
    assert!(markdown.has_figure);
    insta::assert_snapshot!(markdown.text);
}

#[test]
fn whole_documents_are_read_from_their_beginning_to_their_end() {
    let source = "\\documentclass{article}\n\\newcommand{\\x}{five}\n\\begin{document}\nGive \\x{}.\n\\end{document}\nrest";
    assert_eq!(text(source), "Give five.");
}

#[test]
fn what_is_broken_loses_no_text() {
    for (source, wanted) in [
        ("a {b", "a b"),
        ("\\textbf{a", "a"),
        ("$x", "$x$"),
        ("\\begin{itemize}\\item a", "- a"),
        ("\\", ""),
        ("\\verb", ""),
        ("\\end{x} a", "a"),
        ("\\def\\x a", "a"),
    ] {
        assert_eq!(text(source), wanted, "{source}");
    }
}

#[test]
fn macros_that_multiply_end() {
    let mut source = "\\newcommand{\\a}{xxxxxxxxxx}".to_owned();
    for (name, of) in ["b", "d", "e", "f", "g", "h", "k", "m"]
        .iter()
        .zip(["a", "b", "d", "e", "f", "g", "h", "k"])
    {
        source.push_str(&format!(
            "\\newcommand{{\\{name}}}{{{}}}",
            format!("\\{of} ").repeat(10)
        ));
    }
    source.push_str("\\m \\newcommand{\\z}{\\z}\\z");
    assert!(text(&source).len() < 1 << 20);
}

#[test]
fn time_grows_with_the_length_only() {
    let start = std::time::Instant::now();
    for unit in [
        "{",
        "\\begin{a}",
        "\\item[",
        "$",
        "\\textbf{",
        "\\begin{itemize}\\item ",
        "%",
        "\\verb|",
        "\\\\ & ",
    ] {
        text(&unit.repeat(20_000 / unit.len()));
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn any_text_is_converted(source in "([a-z \\n$%&~`'{}\\[\\]-]|\\\\(begin|end|item|textbf|emph|verb|def|newcommand|begin\\{tabular\\}|end\\{tabular\\})|\\PC){0,80}") {
        let made = text(&source);
        prop_assert!(made.len() <= source.len() * 20 + 200);
    }
}
