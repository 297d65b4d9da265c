//! Writes the mappings as a JSON Schema, with which an editor completes and explains keys.

use serde_json::{Map, Value as Json, json};

use super::{DefinitionKey, FILE, MappingShape, ValueShape};

/// The JSON Schema of a definition file, as text.
pub fn schema() -> String {
    let definitions = MappingShape::all().into_iter().filter(|shape| shape.id != FILE.id);
    let definitions: Map<String, Json> =
        definitions.map(|shape| (shape.id.to_owned(), mapping(shape))).collect();
    let mut root = mapping(&FILE);
    if let Json::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        root.insert("title".to_owned(), json!("Spoonbill definitions"));
        root.insert("definitions".to_owned(), Json::Object(definitions));
    }
    format!("{root:#}\n")
}

fn mapping(shape: &MappingShape) -> Json {
    let mut properties = Map::new();
    for key in shape.keys {
        properties.insert(key.name.to_owned(), property(key));
    }
    let mut schema = json!({
        "type": "object",
        "description": shape.description,
        "properties": properties,
        "additionalProperties": match &shape.other_keys {
            None => json!(false),
            Some((words, value)) => described(of(value), words),
        },
    });
    let required: Vec<&str> =
        shape.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    if let (Json::Object(schema), false) = (&mut schema, required.is_empty()) {
        schema.insert("required".to_owned(), json!(required));
    }
    let any = ANY_OF.iter().find(|(id, _)| *id == shape.id);
    if let (Json::Object(schema), Some((_, keys))) = (&mut schema, any) {
        let any: Vec<Json> = keys.iter().map(|key| json!({ "required": [key] })).collect();
        schema.insert("anyOf".to_owned(), json!(any));
    }
    schema
}

/// Mappings that need at least one of these keys.
const ANY_OF: [(&str, &[&str]); 3] = [
    ("field", &["selector", "xpath", "json", "jsonld", "value", "script"]),
    ("follow", &["selector", "xpath"]),
    ("block", &["selector", "xpath", "json"]),
];

/// Keys whose list or mapping must not be empty.
const FILLED: [&str; 9] =
    ["fields", "selector", "xpath", "allow", "deny", "in", "trueWhen", "follow", "urls"];

fn property(key: &DefinitionKey) -> Json {
    let mut schema = of(&key.value);
    if FILLED.contains(&key.name) {
        not_empty(&mut schema);
    }
    if let (Json::Object(schema), "output") = (&mut schema, key.name) {
        schema.insert("pattern".to_owned(), json!(r"\.(csv|tsv|jsonl)$|\$\{"));
    }
    described(schema, key.description)
}

/// Excludes empty lists and mappings.
fn not_empty(schema: &mut Json) {
    let Json::Object(schema) = schema else { return };
    match schema.get("type").and_then(Json::as_str) {
        Some("array") => schema.insert("minItems".to_owned(), json!(1)),
        Some("object") => schema.insert("minProperties".to_owned(), json!(1)),
        _ => None,
    };
    if let Some(Json::Array(choices)) = schema.get_mut("anyOf") {
        choices.iter_mut().for_each(not_empty);
    }
}

/// Adds a description. In draft 7, keywords beside a `$ref` are ignored, so `allOf` wraps it.
fn described(schema: Json, words: &str) -> Json {
    let mut schema = match schema {
        Json::Object(reference) if reference.contains_key("$ref") => {
            json!({ "allOf": [reference] })
        }
        other => other,
    };
    if let Json::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!(words));
    }
    schema
}

/// A percentage up to 100, a fraction up to 1, or a text with a variable.
const SHARE: &str =
    r"^\s*(100(\.0*)?|[0-9]{1,2}(\.[0-9]*)?)\s*%\s*$|^\s*(0?\.[0-9]+|[01](\.0*)?)\s*$|\$\{";

fn of(value: &ValueShape) -> Json {
    match value {
        ValueShape::Text => json!({ "type": "string" }),
        ValueShape::Scalar => json!({ "type": ["string", "number", "boolean"] }),
        ValueShape::Whole => filled(&json!({ "type": "integer", "minimum": 0 })),
        ValueShape::Boolean => filled(&json!({ "type": "boolean" })),
        ValueShape::Share => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": SHARE },
        ] }),
        ValueShape::Word(words) => json!({ "anyOf": [
            { "enum": words },
            { "type": "string", "pattern": r"\$\{" },
        ] }),
        ValueShape::Of(shape) => json!({ "$ref": format!("#/definitions/{}", shape.id) }),
        ValueShape::List(value) => json!({ "type": "array", "items": of(value) }),
        ValueShape::Named(value) => json!({ "type": "object", "additionalProperties": of(value) }),
        ValueShape::Wrapped(key, shape) => json!({ "type": "array", "items": {
            "type": "object",
            "properties": { *key: { "$ref": format!("#/definitions/{}", shape.id) } },
            "required": [key],
            "additionalProperties": false,
        } }),
        ValueShape::Either(values) => json!({ "anyOf": values.iter().map(of).collect::<Vec<_>>() }),
    }
}

/// Also accepts a text with a variable, which may become such a value.
fn filled(schema: &Json) -> Json {
    json!({ "anyOf": [schema, { "type": "string", "pattern": r"\$\{" }] })
}
