//! `partitions`: definitions by name.

use std::collections::BTreeMap;

use segno_actions::document::{Field, Fields, PartReader, Tree, did_you_mean, shown};

use super::keys::PARTITIONS;
use super::reader::Reader;
use crate::plan::definition::{Partitions, UNPARTITIONED, WindowSize};
use crate::plan::limits::{MAX_NAME_BYTES, MAX_PARTITION_DEFINITIONS, MAX_STATIC_KEYS};
use crate::plan::names::NameKind;
use crate::plan::partition::PartitionSet;

/// What `window` can be.
const SIZES: [(&str, WindowSize); 4] = [
    ("hourly", WindowSize::Hourly),
    ("daily", WindowSize::Daily),
    ("weekly", WindowSize::Weekly),
    ("monthly", WindowSize::Monthly),
];

/// The forms of a definition: the key that each begins with, and the keys that go with it.
const FORMS: [(&str, &[&str]); 3] =
    [("window", &["timezone", "first", "last"]), ("values", &[]), ("dimensions", &[])];

impl Reader<'_> {
    /// Reads all definitions, and checks each once all are known.
    pub fn partitions(&mut self, field: &Field<'_>) -> BTreeMap<String, Partitions> {
        let Some(entries) = self.map(field) else { return BTreeMap::new() };
        if entries.len() > MAX_PARTITION_DEFINITIONS {
            let problem = format!(
                "there are {} partition definitions, the limit is {MAX_PARTITION_DEFINITIONS}",
                entries.len()
            );
            self.push(field.error(problem));
        }
        let mut definitions = BTreeMap::new();
        let mut values = Vec::new();
        for entry in entries.iter().take(MAX_PARTITION_DEFINITIONS) {
            let value = field.value(entry);
            let checked = match entry.key == UNPARTITIONED {
                true => Err(format!("{UNPARTITIONED:?} stands for no partitions; use another name")),
                false => NameKind::Partitions.check(&entry.key),
            };
            if let Err(problem) = checked {
                self.push(value.error(problem));
            }
            self.partition_names.insert(entry.key.clone());
            if let Some(definition) = self.partition_definition(value.clone()) {
                values.push((entry.key.clone(), value));
                definitions.insert(entry.key.clone(), definition);
            }
        }
        // Grids last: what is wrong with a dimension is reported there.
        values.sort_by_key(|(name, _)| matches!(definitions[name], Partitions::Grid { .. }));
        for (name, value) in values {
            let is_reported = match &definitions[&name] {
                Partitions::Grid { dimensions } => dimensions.iter().any(|dimension| {
                    self.partition_names.contains(dimension) && !self.partitions.contains_key(dimension)
                }),
                _ => false,
            };
            match PartitionSet::compile(&definitions[&name], &definitions, self.zones) {
                Ok(set) => drop(self.partitions.insert(name, set)),
                Err(_) if is_reported && self.problems.has_errors() => {}
                Err(error) => self.push(value.error(error.problem())),
            }
        }
        definitions
    }

    fn partition_definition(&mut self, field: Field<'_>) -> Option<Partitions> {
        let fields = self.fields(field, &PARTITIONS)?;
        let given: Vec<_> = FORMS.iter().filter(|(key, _)| fields.get(key).is_some()).collect();
        let [(form, _)] = given.as_slice() else {
            let found = if given.is_empty() { "none" } else { "more than one" };
            let problem =
                fields.whole().error(format!("expected one of window, values and dimensions, found {found}"));
            self.push(problem.advice(
                "write {window: daily, first: 2026-01-01}, {values: [a, b]} or {dimensions: [day, region]}",
            ));
            return None;
        };
        for (_, keys) in FORMS.iter().filter(|(other, _)| other != form) {
            for field in keys.iter().filter_map(|key| fields.get(key)) {
                let problem = field.warning(format!("it has no effect beside {form}"));
                self.push(problem.advice("remove it"));
            }
        }
        match *form {
            "window" => self.windows(&fields),
            "values" => {
                let values = self.texts(&fields.get("values")?, MAX_STATIC_KEYS)?;
                Some(Partitions::Keys { values })
            }
            _ => {
                let field = fields.get("dimensions")?;
                let names = self.texts(&field, 2)?;
                match <[String; 2]>::try_from(names) {
                    Ok(dimensions) => Some(Partitions::Grid { dimensions }),
                    Err(names) => {
                        let problem = field.error(format!("expected two dimensions, found {}", names.len()));
                        self.push(problem.advice("write the names of two other definitions"));
                        None
                    }
                }
            }
        }
    }

    fn windows(&mut self, fields: &Fields<'_>) -> Option<Partitions> {
        let window = self.choice(&fields.get("window")?, &SIZES);
        let timezone = match fields.get("timezone") {
            Some(field) => self.text(&field, MAX_NAME_BYTES),
            None => Some("UTC".to_owned()),
        };
        let example = window.map_or("2026-01-01", WindowSize::example);
        let first =
            self.required(fields, "first", example).and_then(|field| self.text(&field, MAX_NAME_BYTES));
        let last = match fields.get("last") {
            Some(field) => Some(self.text(&field, MAX_NAME_BYTES)?),
            None => None,
        };
        Some(Partitions::Windows { window: window?, timezone: timezone?, first: first?, last })
    }

    /// A list of texts; none if one of them is no text.
    pub fn texts(&mut self, field: &Field<'_>, max_items: usize) -> Option<Vec<String>> {
        if !matches!(field.node.tree, Tree::List(_)) {
            let _ = self.list(field, max_items);
            return None;
        }
        let items = self.list(field, max_items);
        let count = items.len();
        let texts: Vec<String> =
            items.into_iter().filter_map(|item| self.text(&item, MAX_NAME_BYTES)).collect();
        (texts.len() == count).then_some(texts)
    }

    /// The name of a definition.
    pub fn known_partitions(&mut self, field: &Field<'_>) -> Option<String> {
        let name = self.text(field, MAX_NAME_BYTES)?;
        if self.partition_names.contains(&name) {
            return Some(name);
        }
        let advice = did_you_mean(&name, self.partition_names.iter().map(String::as_str));
        let advice = advice.unwrap_or_else(|| "add it under partitions".to_owned());
        self.push(field.error(format!("there are no partitions {:?}", shown(&name))).advice(advice));
        None
    }
}
