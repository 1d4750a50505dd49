//! What a regular expression costs, estimated from its syntax before it is compiled: states of its automaton, which
//! take memory, and states that are active at once while it runs, which take time for each byte of text.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, ClassSet, ClassSetItem, RepetitionKind, RepetitionRange};

/// States of a character class such as `[a-z]` or `.`: its UTF-8 forms.
const CLASS_STATES: u64 = 16;
/// States of a class of Unicode such as `\p{L}`.
const UNICODE_STATES: u64 = 600;
/// States of a class that are active at once: a character has up to four bytes.
const CLASS_WIDTH: u64 = 4;
/// Active states times bytes that take about as long as one evaluation.
const STEPS_PER_EVALUATION: u64 = 128;

/// Estimated size of one regular expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PatternSize {
    /// States of the automaton.
    pub(super) states: u64,
    /// States that may be active at once.
    pub(super) width: u64,
}

impl PatternSize {
    /// The size of a pattern; `None` when it is not a regular expression.
    pub(super) fn of(pattern: &str) -> Option<Self> {
        let ast = Parser::new().parse(&without_control_letters(pattern)).ok()?;
        Some(size(&ast))
    }

    /// Evaluations that matching a text of so many bytes counts as.
    pub(super) fn match_cost(self, text_bytes: usize) -> u64 {
        1 + self.width.saturating_mul(text_bytes as u64) / STEPS_PER_EVALUATION
    }

    const fn new(states: u64, width: u64) -> Self {
        PatternSize { states, width }
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.states.saturating_add(other.states), self.width.saturating_add(other.width))
    }

    fn times(self, count: u64) -> Self {
        Self::new(self.states.saturating_mul(count), self.width.saturating_mul(count))
    }
}

/// An expression with more states is not compiled a second time for counting: whether it matches is not known then.
pub(super) const MAX_COUNTED_STATES: u64 = 5_000;

/// Bytes that the validator parses to translate an expression: all of it, again for each class and control letter.
pub(super) fn translated_bytes(pattern: &str) -> u64 {
    let mut passes = 1;
    let mut rest = pattern.chars();
    while let Some(char) = rest.next() {
        let escaped = if char == '\\' { rest.next() } else { None };
        passes += u64::from(matches!(escaped, Some('d' | 'D' | 'w' | 'W' | 's' | 'S' | 'c')));
    }
    passes.saturating_mul(translated(pattern).len().max(pattern.len()) as u64)
}

/// `\cA` is a control character in ECMA 262 and unknown to the parser here; any one character stands for it.
fn without_control_letters(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match rest.next() {
            Some('c') if rest.peek().is_some_and(char::is_ascii_alphabetic) => {
                rest.next();
                out.push('x');
            }
            escaped => {
                out.push('\\');
                out.extend(escaped);
            }
        }
    }
    out
}

/// The pattern as the validator compiles it, in one pass: classes such as `\d` are those of ECMA 262, of ASCII alone.
pub(super) fn translated(pattern: &str) -> String {
    const SPACE: &str = " \t\n\r\u{000b}\u{000c}\u{00a0}\u{feff}\u{2003}\u{2029}";
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match rest.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[A-Za-z0-9_]"),
            Some('W') => out.push_str("[^A-Za-z0-9_]"),
            Some('s') => out.extend(["[", SPACE, "]"]),
            Some('S') => out.extend(["[^", SPACE, "]"]),
            Some('c') if rest.peek().is_some_and(char::is_ascii_alphabetic) => {
                let letter = rest.next().and_then(|letter| u8::try_from(letter).ok());
                out.extend(letter.map(|letter| char::from(letter % 32)));
            }
            escaped => {
                out.push('\\');
                out.extend(escaped);
            }
        }
    }
    out
}

/// The recursion is bounded by the parser's own limit of nesting.
fn size(ast: &Ast) -> PatternSize {
    let one = PatternSize::new(1, 1);
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => one,
        Ast::Literal(_) => PatternSize::new(8, 2),
        Ast::Dot(_) | Ast::ClassPerl(_) => PatternSize::new(CLASS_STATES, CLASS_WIDTH),
        Ast::ClassUnicode(_) => PatternSize::new(UNICODE_STATES, CLASS_WIDTH),
        Ast::ClassBracketed(class) => PatternSize::new(CLASS_STATES + set_states(&class.kind), CLASS_WIDTH),
        Ast::Repetition(repetition) => {
            let count = match &repetition.op.kind {
                RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
                RepetitionKind::Range(RepetitionRange::Exactly(n) | RepetitionRange::AtLeast(n)) => *n,
                RepetitionKind::Range(RepetitionRange::Bounded(_, n)) => *n,
            };
            size(&repetition.ast).plus(one).times(u64::from(count).saturating_add(1))
        }
        Ast::Group(group) => size(&group.ast).plus(one),
        Ast::Alternation(alternation) => sum(&alternation.asts),
        Ast::Concat(concat) => sum(&concat.asts),
    }
}

fn sum(parts: &[Ast]) -> PatternSize {
    parts.iter().fold(PatternSize::new(1, 1), |sum, part| sum.plus(size(part)).plus(PatternSize::new(1, 1)))
}

fn set_states(set: &ClassSet) -> u64 {
    match set {
        ClassSet::Item(item) => item_states(item),
        ClassSet::BinaryOp(op) => set_states(&op.lhs).saturating_add(set_states(&op.rhs)),
    }
}

fn item_states(item: &ClassSetItem) -> u64 {
    match item {
        ClassSetItem::Unicode(_) => UNICODE_STATES,
        ClassSetItem::Bracketed(class) => CLASS_STATES.saturating_add(set_states(&class.kind)),
        ClassSetItem::Union(union) => {
            union.items.iter().fold(0, |sum: u64, item| sum.saturating_add(item_states(item)))
        }
        _ => CLASS_STATES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_translation_takes_grows_with_the_square_of_the_classes() {
        let translation = translated(r"^\d\\d[\w-]\cA\S$");
        let spaces = "\t\n\r\u{b}\u{c}\u{a0}\u{feff}\u{2003}\u{2029}";
        assert_eq!(translation, format!("^[0-9]\\\\d[[A-Za-z0-9_]-]\u{1}[^ {spaces}]$"));
        assert_eq!(translated_bytes("abc"), 3);
        assert_eq!(translated_bytes(r"\d\\d"), 2 * r"[0-9]\\d".len() as u64);
        assert!(translated_bytes(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$") < 3_000);
        assert!(translated_bytes(&r"\s".repeat(1_000)) > 15_000_000);
        assert!(translated_bytes(&r"\cA".repeat(680)) > 400_000);
    }

    #[test]
    fn a_repetition_multiplies_what_it_repeats() {
        let small = PatternSize::of("^[a-z]+@[a-z]+$").unwrap();
        assert!(small.states < 200 && small.match_cost(100) < 50, "{small:?}");
        let nested = PatternSize::of("((a{100}){100}){100}").unwrap();
        assert!(nested.states > 1_000_000, "{nested:?}");
        let control = PatternSize::of(r"^\cA\\cA$").unwrap();
        assert!(control.states > 0);
        assert_eq!(PatternSize::of("("), None);
        let letters = PatternSize::of(r"^[\p{L} ]{1,100}$").unwrap();
        assert!(letters.match_cost(100) < 1_000, "{letters:?}");
    }
}
