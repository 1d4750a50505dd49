//! A schema as a graph of subschemas, as the validator walks it: which subschema applies which others to the same
//! value, to its members and to their names. It takes what the validator may evaluate and never less.

use std::collections::HashMap;

use boon::Draft;
use serde_json::{Map, Value};

use super::pattern::PatternSize;
use super::references::{References, append, names_a_place};
use crate::functions::limits::{
    MAX_SCHEMA_CHAIN, MAX_SCHEMA_EVALUATIONS, MAX_SCHEMA_REVALIDATED, MAX_SCHEMA_SUBSCHEMAS,
};

/// A subschema in the graph.
pub(super) type NodeId = usize;

/// Names in a list, or members of a comparison, that take about as long as one evaluation.
pub(super) const SMALL_STEPS_PER_EVALUATION: u64 = 4;

/// One subschema.
#[derive(Default)]
pub(super) struct Node {
    /// Types that it wants, as bits of [`type_bit`]; `None` is any.
    pub(super) types: Option<u8>,
    /// Evaluations that its comparisons with `const` and `enum` count as.
    pub(super) comparisons: u64,
    /// Applied to the same value.
    pub(super) same: Vec<NodeId>,
    /// Of these one is applied to the same value.
    pub(super) dynamic: Vec<NodeId>,
    /// Applied to the same object if it has the member.
    pub(super) dependent: Vec<(String, NodeId)>,
    /// Names that are looked up in every object.
    pub(super) names: u64,
    pub(super) properties: HashMap<String, NodeId>,
    pub(super) patterns: Vec<(usize, NodeId)>,
    pub(super) additional_properties: Option<NodeId>,
    pub(super) property_names: Option<NodeId>,
    pub(super) unevaluated_properties: Option<NodeId>,
    pub(super) prefix_items: Vec<NodeId>,
    /// Applied to the items behind the prefix.
    pub(super) items: Option<NodeId>,
    pub(super) contains: Option<NodeId>,
    pub(super) unevaluated_items: Option<NodeId>,
    pub(super) unique_items: bool,
    /// The regular expression that strings are matched with.
    pub(super) pattern: Option<PatternSize>,
    pub(super) format: Format,
}

/// What checking the format of a string takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// There is none.
    #[default]
    None,
    /// A pass over the string, or a few.
    Text,
    /// The string is parsed as a regular expression, and translated as those of the schema are.
    Regex,
}

/// All subschemas that an evaluation can reach; the first is the schema itself.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Regular expressions of `patternProperties`.
    pub(super) patterns: Vec<(String, PatternSize)>,
    /// Whether members are tracked as evaluated, which takes a set of them per evaluation.
    pub(super) tracks_members: bool,
}

/// The bit of a type; integers and numbers share one.
pub(super) fn type_bit(name: &str) -> u8 {
    match name {
        "null" => 1,
        "boolean" => 2,
        "number" | "integer" => 4,
        "string" => 8,
        "array" => 16,
        "object" => 32,
        _ => 0,
    }
}

impl Graph {
    /// Follows a schema from its root.
    pub(super) fn build(schema: &Value, draft: Draft) -> Result<Self, String> {
        let references = References::collect(schema, draft)?;
        let mut builder = Builder {
            references,
            queue: Vec::new(),
            known: HashMap::new(),
            revalidated: 0,
            graph: Graph { nodes: Vec::new(), patterns: Vec::new(), tracks_members: false },
        };
        builder.enqueue(String::new())?;
        while let Some(pointer) = builder.queue.get(builder.graph.nodes.len()).cloned() {
            let node = builder.node(&pointer)?;
            builder.graph.nodes.push(node);
        }
        let graph = builder.graph;
        Chains::new(&graph, &builder.queue).check()?;
        Ok(graph)
    }
}

struct Builder<'s> {
    references: References<'s>,
    /// Pointers of the nodes; those behind the nodes that are built wait.
    queue: Vec<String>,
    known: HashMap<String, NodeId>,
    revalidated: usize,
    graph: Graph,
}

impl<'s> Builder<'s> {
    fn enqueue(&mut self, pointer: String) -> Result<NodeId, String> {
        if let Some(known) = self.known.get(&pointer) {
            return Ok(*known);
        }
        let id = self.queue.len();
        if id >= MAX_SCHEMA_SUBSCHEMAS {
            return Err(format!("it has more than {MAX_SCHEMA_SUBSCHEMAS} subschemas"));
        }
        if !self.references.is_place(&pointer) {
            self.check_elsewhere(&pointer)?;
        }
        self.known.insert(pointer.clone(), id);
        self.queue.push(pointer);
        Ok(id)
    }

    /// A subschema where the draft has none, such as below `components`.
    fn check_elsewhere(&mut self, pointer: &str) -> Result<(), String> {
        let Some(value) = self.references.value(pointer) else { return Ok(()) };
        if names_a_place(value) {
            return Err(format!(
                "#{pointer} is not a place for subschemas, so that it cannot have identifiers or anchors; move it \
                 into $defs"
            ));
        }
        self.revalidated += count_values(value);
        if self.revalidated > MAX_SCHEMA_REVALIDATED {
            return Err(format!(
                "too much of it is outside the places for subschemas, as #{pointer}; use $defs"
            ));
        }
        Ok(())
    }

    fn node(&mut self, pointer: &str) -> Result<Node, String> {
        let mut node = Node::default();
        let Some(Value::Object(fields)) = self.references.value(pointer) else { return Ok(node) };
        if let Some(Value::String(reference)) = fields.get("$ref") {
            let target = self.references.resolve(pointer, reference)?;
            node.same.push(self.enqueue(target)?);
            if self.references.draft < Draft::V2019_09 {
                return Ok(node); // Everything beside a reference is ignored.
            }
        }
        self.dynamic_reference(&mut node, pointer, fields)?;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            node.same.extend(self.list(pointer, fields, keyword)?);
        }
        for keyword in ["not", "if", "then", "else"] {
            node.same.extend(self.one(pointer, fields, keyword)?);
        }
        self.object_keywords(&mut node, pointer, fields)?;
        self.array_keywords(&mut node, pointer, fields)?;
        value_keywords(&mut node, self.references.draft, fields);
        Ok(node)
    }

    fn dynamic_reference(
        &mut self,
        node: &mut Node,
        pointer: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), String> {
        let draft = self.references.draft;
        if draft == Draft::V2019_09 && fields.contains_key("$recursiveRef") {
            return Err(
                "$recursiveRef is not supported; use $ref, or $dynamicRef of draft 2020-12".to_owned()
            );
        }
        let Some(Value::String(reference)) = fields.get("$dynamicRef") else { return Ok(()) };
        if draft < Draft::V2020_12 {
            return Ok(());
        }
        let mut targets = self.references.dynamic_places(reference)?;
        targets.push(self.references.resolve(pointer, reference)?);
        for target in targets {
            let target = self.enqueue(target)?;
            if !node.dynamic.contains(&target) {
                node.dynamic.push(target);
            }
        }
        Ok(())
    }

    fn object_keywords(
        &mut self,
        node: &mut Node,
        pointer: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), String> {
        node.properties = self.map(pointer, fields, "properties")?.into_iter().collect();
        for (pattern, target) in self.map(pointer, fields, "patternProperties")? {
            let size = PatternSize::of(&pattern).unwrap_or_default();
            node.patterns.push((self.graph.patterns.len(), target));
            self.graph.patterns.push((pattern, size));
        }
        node.additional_properties = self.one(pointer, fields, "additionalProperties")?;
        node.property_names = self.one(pointer, fields, "propertyNames")?;
        node.unevaluated_properties = self.one(pointer, fields, "unevaluatedProperties")?;
        self.graph.tracks_members |= node.unevaluated_properties.is_some();
        for keyword in ["dependentSchemas", "dependencies"] {
            node.dependent.extend(self.map(pointer, fields, keyword)?);
        }
        for keyword in ["required", "dependentRequired", "dependencies", "dependentSchemas"] {
            node.names += fields.get(keyword).map_or(0, |names| count_values(names) as u64);
        }
        Ok(())
    }

    fn array_keywords(
        &mut self,
        node: &mut Node,
        pointer: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), String> {
        let new = self.references.draft >= Draft::V2020_12;
        match fields.get("items") {
            Some(Value::Array(_)) => {
                node.prefix_items = self.list(pointer, fields, "items")?;
                node.items = self.one(pointer, fields, "additionalItems")?;
            }
            _ => {
                node.items = self.one(pointer, fields, "items")?;
                if new {
                    node.prefix_items = self.list(pointer, fields, "prefixItems")?;
                }
            }
        }
        node.contains = self.one(pointer, fields, "contains")?;
        node.unevaluated_items = self.one(pointer, fields, "unevaluatedItems")?;
        self.graph.tracks_members |= node.unevaluated_items.is_some();
        node.unique_items = fields.get("uniqueItems") == Some(&Value::Bool(true));
        Ok(())
    }

    fn one(
        &mut self,
        pointer: &str,
        fields: &Map<String, Value>,
        keyword: &str,
    ) -> Result<Option<NodeId>, String> {
        let there = fields.contains_key(keyword);
        there.then(|| self.enqueue(append(pointer, &[keyword]))).transpose()
    }

    fn list(
        &mut self,
        pointer: &str,
        fields: &Map<String, Value>,
        keyword: &str,
    ) -> Result<Vec<NodeId>, String> {
        let Some(Value::Array(items)) = fields.get(keyword) else { return Ok(Vec::new()) };
        (0..items.len()).map(|index| self.enqueue(append(pointer, &[keyword, &index.to_string()]))).collect()
    }

    fn map(
        &mut self,
        pointer: &str,
        fields: &Map<String, Value>,
        keyword: &str,
    ) -> Result<Vec<(String, NodeId)>, String> {
        let Some(Value::Object(items)) = fields.get(keyword) else { return Ok(Vec::new()) };
        // Lists are names that a name requires, in `dependencies`.
        let schemas = items.iter().filter(|(_, value)| !value.is_array());
        schemas
            .map(|(name, _)| Ok((name.clone(), self.enqueue(append(pointer, &[keyword, name]))?)))
            .collect()
    }
}

fn value_keywords(node: &mut Node, draft: Draft, fields: &Map<String, Value>) {
    node.types = match fields.get("type") {
        Some(Value::String(name)) => Some(type_bit(name)),
        Some(Value::Array(names)) => {
            Some(names.iter().filter_map(Value::as_str).fold(0, |types, name| types | type_bit(name)))
        }
        _ => None,
    };
    let compared = ["const", "enum"].iter().filter_map(|keyword| fields.get(*keyword));
    node.comparisons = compared.map(count_values).sum::<usize>() as u64 / SMALL_STEPS_PER_EVALUATION;
    node.pattern = match fields.get("pattern") {
        Some(Value::String(pattern)) => PatternSize::of(pattern),
        _ => None,
    };
    node.format = match fields.get("format") {
        None => Format::None,
        // Later drafts take a format for a remark.
        Some(Value::String(name)) if name == "regex" && draft < Draft::V2019_09 => Format::Regex,
        Some(_) => Format::Text,
    };
}

fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

/// Chains of subschemas that apply to the same value: they have an end, are short, and do not multiply.
struct Chains<'g> {
    graph: &'g Graph,
    pointers: &'g [String],
    /// Length and evaluations of the chains from a node; `None` while they are being followed.
    done: HashMap<NodeId, Option<(usize, u64)>>,
}

impl<'g> Chains<'g> {
    fn new(graph: &'g Graph, pointers: &'g [String]) -> Self {
        Chains { graph, pointers, done: HashMap::new() }
    }

    fn check(mut self) -> Result<(), String> {
        (0..self.graph.nodes.len()).try_for_each(|node| self.follow(node, 1).map(|_| ()))
    }

    /// Its recursion is as deep as the longest chain, which is bounded.
    fn follow(&mut self, id: NodeId, depth: usize) -> Result<(usize, u64), String> {
        let place = || format!("#{}", self.pointers.get(id).map_or("", String::as_str));
        match self.done.get(&id) {
            Some(Some(done)) => return Ok(*done),
            Some(None) => {
                return Err(format!(
                    "{} refers to itself for the same value; a recursion has to go through properties or items",
                    place()
                ));
            }
            None => {}
        }
        let too_long = format!(
            "more than {MAX_SCHEMA_CHAIN} subschemas in a row apply to one value, from {} on",
            place()
        );
        if depth > MAX_SCHEMA_CHAIN {
            return Err(too_long);
        }
        self.done.insert(id, None);
        let Some(node) = self.graph.nodes.get(id) else { return Ok((0, 0)) };
        let (mut length, mut evaluations, mut dynamic) = (0, 1_u64, 0);
        for target in node.same.iter().chain(node.dependent.iter().map(|(_, target)| target)) {
            let below = self.follow(*target, depth + 1)?;
            (length, evaluations) = (length.max(below.0), evaluations.saturating_add(below.1));
        }
        for target in &node.dynamic {
            let below = self.follow(*target, depth + 1)?;
            (length, dynamic) = (length.max(below.0), dynamic.max(below.1));
        }
        let done = (length + 1, evaluations.saturating_add(dynamic));
        if done.0 > MAX_SCHEMA_CHAIN {
            return Err(too_long);
        }
        if done.1 > MAX_SCHEMA_EVALUATIONS {
            return Err(format!(
                "one value takes more than {MAX_SCHEMA_EVALUATIONS} evaluations, from #{} on; refer to a subschema \
                 once instead of several times",
                self.pointers.get(id).map_or("", String::as_str)
            ));
        }
        self.done.insert(id, Some(done));
        Ok(done)
    }
}
