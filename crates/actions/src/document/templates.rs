//! Texts of a document that are templates.

use super::excerpt::shown;
use super::field::Field;
use super::reader::PartReader;
use super::tree::Tree;
use crate::template::limits::MAX_TEMPLATE_BYTES;
use crate::template::{Template, TemplateError};

/// All texts at and below a value, each a template; `None` if a problem was reported.
pub fn templates_of<'n>(
    reader: &mut impl PartReader,
    field: &Field<'n>,
) -> Option<Vec<(Field<'n>, Template)>> {
    let mut found = Vec::new();
    collect(reader, field, &mut found).then_some(found)
}

fn collect<'n>(
    reader: &mut impl PartReader,
    field: &Field<'n>,
    found: &mut Vec<(Field<'n>, Template)>,
) -> bool {
    match &field.node.tree {
        Tree::Text(text) => {
            let template = template_of(reader, field, text);
            let is_valid = template.is_some();
            found.extend(template.map(|template| (field.clone(), template)));
            is_valid
        }
        Tree::List(items) => {
            let items = items.iter().enumerate();
            items.fold(true, |valid, (index, item)| collect(reader, &field.item(index, item), found) && valid)
        }
        Tree::Map(entries) => entries.iter().fold(true, |valid, entry| {
            let is_name = !entry.key.contains("{{");
            if !is_name {
                let problem = format!("the key {:?} has a placeholder", shown(&entry.key));
                let advice = "placeholders stand in values, not in keys";
                reader.push(field.value(entry).error(problem).advice(advice));
            }
            collect(reader, &field.value(entry), found) && is_name && valid
        }),
        Tree::Null | Tree::Bool(_) | Tree::Number(..) => true,
    }
}

/// A text as a template; `None` if a problem was reported.
pub fn template_of(reader: &mut impl PartReader, field: &Field<'_>, text: &str) -> Option<Template> {
    if text.len() > MAX_TEMPLATE_BYTES {
        let problem = format!("the text has {} bytes, the limit is {MAX_TEMPLATE_BYTES}", text.len());
        reader.push(field.error(problem));
        return None;
    }
    match Template::parse(text) {
        Ok(template) => {
            if has_stray_close(text) {
                let problem = field.warning(format!("{:?} has }}}} without {{{{ before it", shown(text)));
                reader.push(problem.advice("a placeholder is written {{name}}"));
            }
            Some(template)
        }
        Err(error) => {
            let column = match &error {
                TemplateError::Invalid { place, .. } | TemplateError::Failed { place, .. } => place.column,
            };
            let problem =
                format!("the template {:?} is wrong at character {column}: {}", shown(text), error.problem());
            reader.push(field.error(problem).advice("a placeholder is written {{name}}"));
            None
        }
    }
}

/// Whether a text that is a template has a `}}` that closes nothing. JSON in a text ends in such.
fn has_stray_close(text: &str) -> bool {
    if text.trim_start().starts_with('[') || text.replace(' ', "").starts_with("{\"") {
        return false;
    }
    let mut parts = text.split("{{");
    let before = parts.next().unwrap_or_default();
    before.contains("}}") || parts.any(|part| part.matches("}}").count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_close_is_found_outside_of_json() {
        for (text, is_stray) in [
            ("{{a}}", false),
            ("{a}}", true),
            ("a}} {{b}}", true),
            ("{{a}} b}}", true),
            (r#"{"a":{"b":"{{c}}"}}"#, false),
            ("plain", false),
        ] {
            assert_eq!(has_stray_close(text), is_stray, "{text}");
        }
    }
}
