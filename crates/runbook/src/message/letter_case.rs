//! Names of fields in either letter case: `jobId` and `JobId` are the same field.

use serde_json::{Map, Value};

/// The object with the names that are known spelled as they are known. Of two spellings of one name,
/// the exact one counts. Other names and everything below stay as they are.
pub(super) fn with_known_names(value: Value, known: &[&str]) -> Value {
    let Value::Object(fields) = value else { return value };
    let mut spelled = Map::new();
    for (name, value) in fields {
        match known.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
            Some(known) if *known == name => {
                spelled.insert(name, value);
            }
            Some(known) => {
                spelled.entry((*known).to_owned()).or_insert(value);
            }
            None => {
                spelled.insert(name, value);
            }
        }
    }
    Value::Object(spelled)
}

/// A field, whatever its letter case; the exact spelling counts first.
pub(super) fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields
        .get(name)
        .or_else(|| fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exact_spelling_wins_and_other_fields_stay() {
        let value = json!({"JobId": "a", "jobId": "b", "Other": {"JobId": 1}});
        assert_eq!(with_known_names(value, &["jobId"]), json!({"jobId": "b", "Other": {"JobId": 1}}));
        assert_eq!(with_known_names(json!({"JOBID": "a"}), &["jobId"]), json!({"jobId": "a"}));
        assert_eq!(with_known_names(json!([1]), &["jobId"]), json!([1]));
    }

    #[test]
    fn a_field_is_found_in_any_case() {
        let fields = json!({"Complete": false, "complete": true});
        assert_eq!(field(fields.as_object().unwrap(), "complete"), Some(&json!(true)));
        let fields = json!({"COMPLETE": false});
        assert_eq!(field(fields.as_object().unwrap(), "complete"), Some(&json!(false)));
    }
}
