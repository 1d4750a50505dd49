//! Whether a condition holds. Operands are borrowed from the names, however often a condition repeats them, and what is
//! compared is counted: a condition that would take too long has no answer.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::condition::{Comparison, Condition, Node, Operand};
use super::error::{Place, Problem, TemplateError};
use super::limits::MAX_CONDITION_STEPS;

/// Bytes of text that are compared in one step.
const TEXT_BYTES_PER_STEP: usize = 64;

impl Condition {
    /// Whether it is true of these names. There is an answer for all values, so that a payload cannot make a filter fail
    /// by what it holds, but only by its size.
    ///
    /// # Errors
    /// `template-failed` when comparing takes more than [`MAX_CONDITION_STEPS`](super::limits::MAX_CONDITION_STEPS) steps.
    pub fn holds(&self, names: &Value) -> Result<bool, TemplateError> {
        let mut evaluation = Evaluation { names, steps_left: MAX_CONDITION_STEPS };
        evaluation.holds(&self.root).map_err(|problem| problem.at(&Place::default()))
    }
}

/// A value of the names or of the condition, or a list of such.
enum Borrowed<'v> {
    Value(&'v Value),
    List(Vec<Borrowed<'v>>),
}

struct Evaluation<'v> {
    names: &'v Value,
    steps_left: usize,
}

impl<'v> Evaluation<'v> {
    fn holds(&mut self, node: &'v Node) -> Result<bool, Problem> {
        self.take(1)?;
        match node {
            Node::Any(nodes) => self.first(nodes, true),
            Node::All(nodes) => self.first(nodes, false).map(|found| !found),
            Node::Not(node) => self.holds(node).map(|holds| !holds),
            Node::Exists(path) => Ok(path.find(self.names).is_some()),
            Node::Is(operand) => Ok(matches!(self.operand(operand), Borrowed::Value(Value::Bool(true)))),
            Node::Compare(left, comparison, right) => {
                let (left, right) = (self.operand(left), self.operand(right));
                self.compare(&left, *comparison, &right)
            }
        }
    }

    /// Whether one of the nodes has this answer; those behind it are not evaluated.
    fn first(&mut self, nodes: &'v [Node], answer: bool) -> Result<bool, Problem> {
        for node in nodes {
            if self.holds(node)? == answer {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn operand(&self, operand: &'v Operand) -> Borrowed<'v> {
        match operand {
            Operand::Path(path) => Borrowed::Value(path.find(self.names).unwrap_or(&Value::Null)),
            Operand::Literal(value) => Borrowed::Value(value),
            Operand::List(items) => Borrowed::List(items.iter().map(|item| self.operand(item)).collect()),
        }
    }

    fn compare(
        &mut self,
        left: &Borrowed<'_>,
        comparison: Comparison,
        right: &Borrowed<'_>,
    ) -> Result<bool, Problem> {
        Ok(match comparison {
            Comparison::Equal => self.equal(left, right)?,
            Comparison::NotEqual => !self.equal(left, right)?,
            Comparison::Less => self.order(left, right)? == Some(Ordering::Less),
            Comparison::LessOrEqual => self.order(left, right)?.is_some_and(Ordering::is_le),
            Comparison::Greater => self.order(left, right)? == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => self.order(left, right)?.is_some_and(Ordering::is_ge),
            Comparison::In => self.contains(right, left)?,
            Comparison::Contains => self.contains(left, right)?,
        })
    }

    /// Numbers are equal by value, however they are written.
    fn equal(&mut self, left: &Borrowed<'_>, right: &Borrowed<'_>) -> Result<bool, Problem> {
        match (left, right) {
            (Borrowed::Value(Value::Number(left)), Borrowed::Value(Value::Number(right))) => {
                self.take(1)?;
                Ok(order_numbers(left, right) == Some(Ordering::Equal))
            }
            _ => self.same(left, right),
        }
    }

    /// Whether two values are the same; numbers within them by how they are written.
    fn same(&mut self, left: &Borrowed<'_>, right: &Borrowed<'_>) -> Result<bool, Problem> {
        match (left, right) {
            (Borrowed::Value(left), Borrowed::Value(right)) => self.same_value(left, right),
            (Borrowed::List(left), Borrowed::List(right)) => {
                self.take(1)?;
                self.all_same(left.len() == right.len(), left.iter().zip(right), Self::same)
            }
            (Borrowed::List(list), Borrowed::Value(value))
            | (Borrowed::Value(value), Borrowed::List(list)) => {
                self.take(1)?;
                let Value::Array(items) = value else { return Ok(false) };
                self.all_same(list.len() == items.len(), list.iter().zip(items), |this, left, right| {
                    this.same(left, &Borrowed::Value(right))
                })
            }
        }
    }

    /// Its depth is that of a parsed payload.
    fn same_value(&mut self, left: &Value, right: &Value) -> Result<bool, Problem> {
        self.take(1)?;
        match (left, right) {
            (Value::String(left), Value::String(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.take(left.len() / TEXT_BYTES_PER_STEP)?;
                Ok(left == right)
            }
            (Value::Array(left), Value::Array(right)) => {
                self.all_same(left.len() == right.len(), left.iter().zip(right), Self::same_value)
            }
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (name, left) in left {
                    self.take(name.len() / TEXT_BYTES_PER_STEP)?;
                    let Some(right) = right.get(name) else { return Ok(false) };
                    if !self.same_value(left, right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(left == right),
        }
    }

    fn all_same<L, R>(
        &mut self,
        as_long: bool,
        mut pairs: impl Iterator<Item = (L, R)>,
        same: impl Fn(&mut Self, L, R) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        while as_long && let Some((left, right)) = pairs.next() {
            if !same(self, left, right)? {
                return Ok(false);
            }
        }
        Ok(as_long)
    }

    fn order(&mut self, left: &Borrowed<'_>, right: &Borrowed<'_>) -> Result<Option<Ordering>, Problem> {
        let (Borrowed::Value(left), Borrowed::Value(right)) = (left, right) else { return Ok(None) };
        Ok(match (left, right) {
            (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
            (Value::String(left), Value::String(right)) => {
                self.take(left.len().min(right.len()) / TEXT_BYTES_PER_STEP)?;
                Some(left.cmp(right))
            }
            _ => None,
        })
    }

    fn contains(&mut self, whole: &Borrowed<'_>, part: &Borrowed<'_>) -> Result<bool, Problem> {
        match (whole, part) {
            (Borrowed::List(items), part) => {
                for item in items {
                    if self.equal(item, part)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Borrowed::Value(Value::Array(items)), part) => {
                for item in items {
                    if self.equal(&Borrowed::Value(item), part)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Borrowed::Value(Value::String(text)), Borrowed::Value(Value::String(part))) => {
                self.take((text.len() + part.len()) / TEXT_BYTES_PER_STEP)?;
                Ok(text.contains(part.as_str()))
            }
            _ => Ok(false),
        }
    }

    fn take(&mut self, steps: usize) -> Result<(), Problem> {
        let too_many = || {
            Problem(format!("comparing takes more than {MAX_CONDITION_STEPS} steps; compare smaller parts"))
        };
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(too_many)?;
        Ok(())
    }
}

fn order_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
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
            ("payload.sub.a == [1.0, 2]", false),
            ("[1, 2] == payload.sub.a and [payload.n, 1] == [7, 1] and [1] != [1, 1]", true),
            ("payload.sub in [payload.labels, [1], payload.sub]", true),
            ("[[1, 2]] contains payload.sub.a", true),
            ("[1, 2] < [1, 3] or payload.sub == [1]", false),
            ("false or true and false", false),
            ("(false or true) and true", true),
            ("not not true", true),
            ("not false and false", false),
        ] {
            assert_eq!(Condition::parse(text).unwrap().holds(&names), Ok(holds), "{text}");
        }
    }

    #[test]
    fn operands_are_not_copied_however_often_they_are_written() {
        let names = json!({ "payload": vec!["x"; 100_000] });
        let list = format!("[{}]", vec!["payload"; 400].join(","));
        let condition = Condition::parse(&format!("1 in {list}")).unwrap();
        let Node::Compare(_, _, list) = &condition.root else { panic!("not a comparison") };
        let evaluation = Evaluation { names: &names, steps_left: 0 };
        let Borrowed::List(items) = evaluation.operand(list) else { panic!("not a list") };
        for item in &items {
            assert!(matches!(item, Borrowed::Value(value) if std::ptr::eq(*value, &names["payload"])));
        }
        assert_eq!(condition.holds(&names), Ok(false));
    }

    #[test]
    fn comparing_ends_after_so_many_steps() {
        let names =
            json!({ "a": vec![0; 100_000], "b": vec![0; 100_000], "t": "x".repeat(1_000_000), "u": "y" });
        for (text, repeated) in [("a != b", 100), ("t contains u", 200), ("1 in a", 100), ("t < t", 200)] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(condition.holds(&names), Ok(false), "{text}");
            let condition = Condition::parse(&vec![text; repeated].join(" or ")).unwrap();
            let error = condition.holds(&names).unwrap_err();
            assert_eq!(error.code(), "template-failed");
            assert!(error.to_string().contains("steps"), "{error}");
        }
    }
}
