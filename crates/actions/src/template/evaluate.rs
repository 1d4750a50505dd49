//! Whether a condition holds. There is an answer for all values, so that a payload cannot make a filter fail.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::condition::{Comparison, Condition, Node, Operand};

impl Condition {
    /// Whether it is true of these names.
    pub fn holds(&self, names: &Value) -> bool {
        self.root.holds(names)
    }
}

impl Node {
    fn holds(&self, names: &Value) -> bool {
        match self {
            Node::Any(nodes) => nodes.iter().any(|node| node.holds(names)),
            Node::All(nodes) => nodes.iter().all(|node| node.holds(names)),
            Node::Not(node) => !node.holds(names),
            Node::Exists(path) => path.find(names).is_some(),
            Node::Is(operand) => *operand.value(names) == Value::Bool(true),
            Node::Compare(left, comparison, right) => {
                comparison.holds(&left.value(names), &right.value(names))
            }
        }
    }
}

impl Operand {
    fn value<'v>(&'v self, names: &'v Value) -> Cow<'v, Value> {
        match self {
            Operand::Path(path) => Cow::Borrowed(path.find(names).unwrap_or(&Value::Null)),
            Operand::Literal(value) => Cow::Borrowed(value),
            Operand::List(items) => {
                Cow::Owned(Value::Array(items.iter().map(|item| item.value(names).into_owned()).collect()))
            }
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Comparison::Equal => equal(left, right),
            Comparison::NotEqual => !equal(left, right),
            Comparison::Less => order(left, right) == Some(Ordering::Less),
            Comparison::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
            Comparison::Greater => order(left, right) == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
            Comparison::In => contains(right, left),
            Comparison::Contains => contains(left, right),
        }
    }
}

/// Numbers are equal by value, however they are written.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right) == Some(Ordering::Equal),
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn order_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(items), part) => items.iter().any(|item| equal(item, part)),
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_hold_or_not() {
        let names = json!({
            "payload": { "action": "opened", "n": 7, "f": 7.0, "big": 18446744073709551615_u64, "yes": true, "none": null,
                         "labels": ["bug", "ui"], "sub": { "a": [1, 2] } },
            "headers": { "x-github-event": "pull_request" },
        });
        for (text, holds) in [
            (r#"payload.action == "opened" and headers.x-github-event == 'pull_request'"#, true),
            ("payload.action != 'opened'", false),
            ("payload.n == 7 and payload.f == 7 and payload.n == 7.0", true),
            ("payload.n < 8 and payload.n <= 7 and payload.n > 6.5 and payload.n >= 7", true),
            ("payload.big > 9223372036854775807", true),
            ("payload.big == -1", false),
            ("payload.action < 'p' and payload.action > 'o'", true),
            ("payload.action in ['closed', 'opened']", true),
            ("payload.n in []", false),
            ("payload.labels contains 'bug'", true),
            ("payload.labels contains 'bu'", false),
            ("payload.action contains 'pen'", true),
            ("'pen' in payload.action", true),
            ("payload.yes", true),
            ("payload.n", false),
            ("not payload.missing", true),
            ("payload.missing == null and payload.none == null", true),
            ("exists(payload.none) and not exists(payload.missing)", true),
            ("payload.missing < 1 or payload.missing >= 1 or payload.action > 1", false),
            ("payload.missing != 1", true),
            ("payload.sub.a == [1, 2] and payload.sub.a[1] == 2", true),
            ("false or true and false", false),
            ("(false or true) and true", true),
            ("not not true", true),
            ("not false and false", false),
        ] {
            assert_eq!(Condition::parse(text).unwrap().holds(&names), holds, "{text}");
        }
    }
}
