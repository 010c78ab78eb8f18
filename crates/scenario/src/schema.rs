//! The JSON schema of a scenario, for editors: made from the declarations of the tables and the registry of
//! schedules.

use serde_json::{Value, json};

use crate::format::File;
use crate::options::all_options;

/// The JSON schema (draft 2020-12) of a scenario.
pub fn schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<File>().to_value();
    schema["title"] = "pipestep scenario".into();
    if let Some(keys) = schema.pointer_mut("/$defs/Pipeline/properties").and_then(Value::as_object_mut) {
        for (name, (spec, takers)) in all_options() {
            let mut key = match spec.choices {
                [] => json!({ "type": "integer", "minimum": 0 }),
                words => json!({ "type": "string", "enum": words }),
            };
            let takers = takers.join(", ");
            key["description"] = format!("{takers}: {}; default {}", spec.meaning, spec.default).into();
            keys.insert(name.to_owned(), key);
        }
    }
    schema
}
