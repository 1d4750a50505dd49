//! What checking an input takes, counted before it is done: a memoised pass over pairs of subschema and value. The
//! cost of a pair is its own and that of every pair it evaluates, so that repeated work is counted as often as the
//! validator does it and followed once. The pass ends as soon as a limit is broken, and its recursion is bounded.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::graph::{Format, Graph, Node, NodeId, SMALL_STEPS_PER_EVALUATION, type_bit};
use super::pattern::translated_bytes;
use crate::functions::limits::{MAX_SCHEMA_EVALUATIONS, MAX_SCHEMA_RECURSION};

/// Evaluations of a property's name, which the validator copies and checks from the start.
const NAME_FACTOR: u64 = 4;
/// A dynamic reference looks at everything above it.
const DYNAMIC_COST: u64 = 8;
/// Bytes of a string that are looked at in the time of one evaluation.
const TEXT_BYTES_PER_EVALUATION: u64 = 256;
/// Bytes of a regular expression that are parsed in the time of one evaluation.
const PARSED_BYTES_PER_EVALUATION: u64 = 8;
/// Up to so many items are compared each with each for `uniqueItems`; more are hashed.
const MAX_COMPARED_ITEMS: usize = 20;

/// What checking an input takes, or that it takes too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Evaluations of a subschema with a value, or what takes as long.
    pub(super) evaluations: u64,
    /// How deep they are nested.
    pub(super) levels: usize,
}

/// Why an input is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooCostly {
    /// Too much work.
    #[error("it would take more than {MAX_SCHEMA_EVALUATIONS} evaluations of subschemas")]
    Evaluations,
    /// Too deep.
    #[error("subschemas would be nested deeper than {MAX_SCHEMA_RECURSION} levels")]
    Levels,
}

/// What a subschema is applied to.
#[derive(Clone, Copy)]
enum Subject<'v> {
    Value(&'v Value),
    Name(&'v String),
}

impl Subject<'_> {
    /// Two subjects of one input have the same address only if they are the same.
    fn address(self) -> usize {
        match self {
            Subject::Value(value) => std::ptr::from_ref(value).addr(),
            Subject::Name(name) => std::ptr::from_ref(name).addr(),
        }
    }

    fn type_bit(self) -> u8 {
        type_bit(match self {
            Subject::Value(Value::Null) => "null",
            Subject::Value(Value::Bool(_)) => "boolean",
            Subject::Value(Value::Number(_)) => "number",
            Subject::Value(Value::String(_)) | Subject::Name(_) => "string",
            Subject::Value(Value::Array(_)) => "array",
            Subject::Value(Value::Object(_)) => "object",
        })
    }
}

/// Whether the name of a member matches a regular expression of `patternProperties`; `None` when that is not known.
pub(super) type Matches<'m> = &'m dyn Fn(usize, &str) -> Option<bool>;

/// Counts what checking an input against a schema takes.
pub(super) fn count(graph: &Graph, matches: Matches<'_>, input: &Value) -> Result<Cost, TooCostly> {
    let mut pass = Pass { graph, matches, spent: 0, known: HashMap::new(), matched: HashMap::new() };
    pass.cost(0, Subject::Value(input), 1)
}

struct Pass<'g, 'm> {
    graph: &'g Graph,
    matches: Matches<'m>,
    /// Own costs of all pairs so far: what this pass has done itself.
    spent: u64,
    known: HashMap<(NodeId, usize), Cost>,
    matched: HashMap<(usize, usize), Option<bool>>,
}

/// The sum over what one pair evaluates.
struct Sum {
    evaluations: u64,
    below: usize,
}

impl Sum {
    fn add(&mut self, cost: Cost, factor: u64) {
        self.evaluations = self.evaluations.saturating_add(cost.evaluations.saturating_mul(factor));
        self.below = self.below.max(cost.levels);
    }
}

impl Pass<'_, '_> {
    fn cost(&mut self, id: NodeId, subject: Subject<'_>, level: usize) -> Result<Cost, TooCostly> {
        let key = (id, subject.address());
        let known = self.known.get(&key).copied();
        if level + known.map_or(1, |cost| cost.levels) > MAX_SCHEMA_RECURSION + 1 {
            return Err(TooCostly::Levels);
        }
        if let Some(cost) = known {
            return Ok(cost);
        }
        let graph = self.graph;
        let Some(node) = graph.nodes.get(id) else { return Ok(Cost { evaluations: 1, levels: 1 }) };
        let mut sum = Sum { evaluations: 0, below: 0 };
        self.spend(&mut sum, 1)?;
        if node.types.is_none_or(|types| types & subject.type_bit() != 0) {
            self.apply(node, subject, level, &mut sum)?;
        }
        if sum.evaluations > MAX_SCHEMA_EVALUATIONS {
            return Err(TooCostly::Evaluations);
        }
        let cost = Cost { evaluations: sum.evaluations, levels: sum.below + 1 };
        if sum.below > 0 {
            self.known.insert(key, cost);
        }
        Ok(cost)
    }

    /// Adds to a pair what it takes itself.
    fn spend(&mut self, sum: &mut Sum, evaluations: u64) -> Result<(), TooCostly> {
        self.spent = self.spent.saturating_add(evaluations);
        sum.evaluations = sum.evaluations.saturating_add(evaluations);
        if self.spent > MAX_SCHEMA_EVALUATIONS { Err(TooCostly::Evaluations) } else { Ok(()) }
    }

    fn apply(
        &mut self,
        node: &Node,
        subject: Subject<'_>,
        level: usize,
        sum: &mut Sum,
    ) -> Result<(), TooCostly> {
        self.spend(sum, node.comparisons)?;
        for target in &node.same {
            sum.add(self.cost(*target, subject, level + 1)?, 1);
        }
        if !node.dynamic.is_empty() {
            self.spend(sum, DYNAMIC_COST + node.dynamic.len() as u64)?;
            let mut worst = Cost { evaluations: 0, levels: 0 };
            for target in &node.dynamic {
                let cost = self.cost(*target, subject, level + 1)?;
                worst.evaluations = worst.evaluations.max(cost.evaluations);
                worst.levels = worst.levels.max(cost.levels);
            }
            sum.add(worst, 1);
        }
        match subject {
            Subject::Value(Value::Object(members)) => {
                for (name, target) in &node.dependent {
                    if members.contains_key(name) {
                        sum.add(self.cost(*target, subject, level + 1)?, 1);
                    }
                }
                self.object(node, members, level, sum)
            }
            Subject::Value(Value::Array(items)) => self.array(node, items, level, sum),
            Subject::Value(Value::String(text)) | Subject::Name(text) => self.text(node, text, sum),
            Subject::Value(_) => Ok(()),
        }
    }

    fn text(&mut self, node: &Node, text: &str, sum: &mut Sum) -> Result<(), TooCostly> {
        let bytes = text.len() as u64;
        let mut own = bytes / TEXT_BYTES_PER_EVALUATION;
        if let Some(pattern) = node.pattern {
            own = own.saturating_add(pattern.match_cost(text.len()));
        }
        if node.format != Format::None {
            // Some formats take time in the square of the length.
            own = own.saturating_add(bytes / 16).saturating_add((bytes / 32).saturating_pow(2));
        }
        if node.format == Format::Regex {
            own = own.saturating_add(translated_bytes(text) / PARSED_BYTES_PER_EVALUATION);
        }
        self.spend(sum, own)
    }

    fn object(
        &mut self,
        node: &Node,
        members: &serde_json::Map<String, Value>,
        level: usize,
        sum: &mut Sum,
    ) -> Result<(), TooCostly> {
        let tracked = if self.graph.tracks_members { members.len() as u64 } else { 0 };
        self.spend(sum, (members.len() as u64 + node.names) / SMALL_STEPS_PER_EVALUATION + tracked)?;
        for (name, value) in members {
            let value = Subject::Value(value);
            let mut evaluated = false;
            if let Some(target) = node.properties.get(name) {
                evaluated = true;
                sum.add(self.cost(*target, value, level + 1)?, 1);
            }
            for (pattern, target) in &node.patterns {
                let matches = self.matches(*pattern, name, sum)?;
                if matches != Some(false) {
                    // If it is not known, both are counted: that it matches, and that it does not.
                    evaluated |= matches == Some(true);
                    sum.add(self.cost(*target, value, level + 1)?, 1);
                }
            }
            if !evaluated && let Some(target) = node.additional_properties.or(node.unevaluated_properties) {
                sum.add(self.cost(target, value, level + 1)?, 1);
            }
            if let Some(target) = node.property_names {
                sum.add(self.cost(target, Subject::Name(name), level + 1)?, NAME_FACTOR);
            }
        }
        Ok(())
    }

    fn matches(&mut self, pattern: usize, name: &String, sum: &mut Sum) -> Result<Option<bool>, TooCostly> {
        let size = self.graph.patterns.get(pattern).map(|(_, size)| *size).unwrap_or_default();
        self.spend(sum, size.match_cost(name.len()))?;
        let test = self.matches;
        let key = (pattern, Subject::Name(name).address());
        Ok(*self.matched.entry(key).or_insert_with(|| test(pattern, name)))
    }

    fn array(&mut self, node: &Node, items: &[Value], level: usize, sum: &mut Sum) -> Result<(), TooCostly> {
        if self.graph.tracks_members {
            self.spend(sum, items.len() as u64)?;
        }
        if node.unique_items {
            let left = MAX_SCHEMA_EVALUATIONS.saturating_sub(self.spent);
            self.spend(sum, unique_cost(items, left))?;
        }
        for (index, value) in items.iter().enumerate() {
            let target = node.prefix_items.get(index).copied().or(node.items).or(node.unevaluated_items);
            for target in target.into_iter().chain(node.contains) {
                sum.add(self.cost(target, Subject::Value(value), level + 1)?, 1);
            }
        }
        Ok(())
    }
}

/// What comparing items takes. Hashes of the validator leave out how arrays are nested, so that unequal items can be
/// made to collide; those are compared each with each.
fn unique_cost(items: &[Value], limit: u64) -> u64 {
    let sizes: u64 = items.iter().map(weight).fold(0, u64::saturating_add);
    if items.len() <= MAX_COMPARED_ITEMS {
        return sizes.saturating_mul(MAX_COMPARED_ITEMS as u64 / 2) / SMALL_STEPS_PER_EVALUATION;
    }
    if sizes > limit {
        return sizes;
    }
    let mut colliding: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut containers = 0_u64;
    for item in items.iter().filter(|item| item.is_array() || item.is_object()) {
        containers += 1;
        let (count, largest) = colliding.entry(flat_hash(item)).or_default();
        (*count, *largest) = (*count + 1, (*largest).max(weight(item)));
    }
    let collisions = colliding.into_values().filter(|(count, _)| *count > 1);
    let compared = collisions.fold(0_u64, |sum, (count, largest)| {
        sum.saturating_add(count.saturating_mul(count).saturating_mul(largest) / SMALL_STEPS_PER_EVALUATION)
    });
    // The last part is for collisions that were made on purpose in another way.
    sizes.saturating_add(compared).saturating_add(containers.saturating_mul(containers) / 64)
}

/// Values in a value, long strings counting as several. Inputs are parsed, which bounds how deep they are.
fn weight(value: &Value) -> u64 {
    let text = |text: &str| 1 + text.len() as u64 / TEXT_BYTES_PER_EVALUATION;
    match value {
        Value::String(value) => text(value),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, value)| text(name) + weight(value)).sum::<u64>()
        }
        _ => 1,
    }
}

/// The same for all values that the validator's hash cannot tell apart.
fn flat_hash(value: &Value) -> u64 {
    fn feed(value: &Value, state: &mut DefaultHasher) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| feed(item, state)),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let mut state = DefaultHasher::new();
                    name.hash(&mut state);
                    feed(value, &mut state);
                    state.finish()
                });
                members.fold(0, |hash, member| hash ^ member).hash(state);
            }
            Value::String(text) => text.hash(state),
            Value::Number(number) => number.as_f64().unwrap_or_default().to_bits().hash(state),
            Value::Bool(value) => value.hash(state),
            Value::Null => 0xC000_0001_u32.hash(state),
        }
    }
    let mut state = DefaultHasher::new();
    feed(value, &mut state);
    state.finish()
}
