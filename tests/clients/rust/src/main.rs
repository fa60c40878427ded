//! Drives schema_registry_converter against a server; one JSON line a step.
//!
//!     clients write AVRO|JSON|PROTOBUF            registers, is refused, encodes
//!     clients check AVRO|JSON|PROTOBUF            asks whether schemas fit
//!     clients read AVRO|JSON|PROTOBUF HEX         fetches, decodes, asks for what isn't there
//!     clients decode AVRO|JSON|PROTOBUF HEX       decodes alone
//!     clients headers AVRO|JSON|PROTOBUF          the schema's GUID in a header in place of its id
//!     clients refused AVRO                        registers without the right to
//!
//! REGISTRY_URL, REGISTRY_CONTEXT and REGISTRY_TOKEN say where and who; SCHEMAS names the folder of the schemas.
mod codecs;

use std::env;
use std::error::Error;
use std::fs;

use schema_registry_converter::async_impl::schema_registry::{
    SrSettings, get_all_subjects, get_all_versions, get_schema_by_guid, get_schema_by_id,
    get_schema_by_subject_and_version, is_compatible_schema, post_schema,
};
use schema_registry_converter::error::SRCError;
use schema_registry_converter::schema_registry_common::{
    RawError, RegisteredSchema, SchemaType, SubjectNameStrategy, SuppliedReference, SuppliedSchema,
};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

const CUSTOMERS: &str = "customers-value";

struct Format {
    folder: &'static str,
    ending: &'static str,
    kind: SchemaType,
    subject: &'static str,
    reference: &'static str,
}

fn format(name: &str) -> Format {
    let (ending, kind, subject, reference) = match name {
        "AVRO" => ("avsc", SchemaType::Avro, "shop.Address", "shop.Address"),
        "JSON" => ("json", SchemaType::Json, "address.json", "https://shop.example/address.json"),
        _ => ("proto", SchemaType::Protobuf, "shop/address.proto", "shop/address.proto"),
    };
    let folder = match name {
        "AVRO" => "avro",
        "JSON" => "json",
        _ => "protobuf",
    };
    Format { folder, ending, kind, subject, reference }
}

impl Format {
    fn text(&self, name: &str) -> Result<String, Box<dyn Error>> {
        let folder = env::var("SCHEMAS")?;
        Ok(fs::read_to_string(format!("{folder}/{}/{name}.{}", self.folder, self.ending))?)
    }

    fn address(&self) -> Result<SuppliedSchema, Box<dyn Error>> {
        Ok(SuppliedSchema::new(Some("shop.Address".into()), self.kind.clone(), self.text("address")?))
    }

    /// The client registers what a schema refers to along with it.
    fn customer(&self, variant: &str) -> Result<SuppliedSchema, Box<dyn Error>> {
        self.customer_with(variant, self.subject)
    }

    fn customer_with(&self, variant: &str, subject: &str) -> Result<SuppliedSchema, Box<dyn Error>> {
        let text = self.text(&format!("customer{variant}"))?;
        let address = SuppliedReference::new(self.reference.into(), subject.into(), self.text("address")?);
        Ok(SuppliedSchema::new(Some("shop.Customer".into()), self.kind.clone(), text).with_references(vec![address]))
    }

    fn strategy(&self, variant: &str) -> Result<SubjectNameStrategy, Box<dyn Error>> {
        let schema = self.customer(variant)?;
        Ok(SubjectNameStrategy::TopicNameStrategyWithSchema("customers".into(), false, schema))
    }
}

fn say(step: &str, mut facts: Value) {
    facts["step"] = json!(step);
    println!("{facts}");
}

fn registered(step: &str, found: &RegisteredSchema) {
    say(step, json!({"id": found.id, "given": found}));
}

/// Says how a call was refused; one that goes through is a failure.
fn refuse<T>(step: &str, outcome: Result<T, SRCError>) -> Outcome {
    let Err(error) = outcome else {
        return Err(format!("{step}: expected a refusal").into());
    };
    let mut facts = json!({"error": error.error, "retriable": error.retriable, "cached": error.cached});
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = source {
        if let Some(raw) = cause.downcast_ref::<RawError>() {
            facts["code"] = json!(raw.error_code);
            facts["message"] = json!(raw.message);
        }
        source = cause.source();
    }
    say(step, facts);
    Ok(())
}

fn settings() -> Result<SrSettings, Box<dyn Error>> {
    let mut url = env::var("REGISTRY_URL")?;
    if let Ok(context) = env::var("REGISTRY_CONTEXT") {
        url = format!("{url}/contexts/{context}");
    }
    let mut builder = SrSettings::new_builder(url);
    if let Ok(token) = env::var("REGISTRY_TOKEN") {
        builder.set_basic_authorization("tests", Some(&token));
    }
    Ok(builder.no_proxy().build()?)
}

async fn write(format: &Format) -> Outcome {
    let settings = settings()?;
    let address = post_schema(&settings, format.subject.into(), format.address()?).await?;
    registered("register address", &address);
    let customer = post_schema(&settings, CUSTOMERS.into(), format.customer("")?).await?;
    registered("register customer", &customer);
    let again = post_schema(&settings, CUSTOMERS.into(), format.customer("")?).await?;
    registered("register again", &again);
    refuse("incompatible", post_schema(&settings, CUSTOMERS.into(), format.customer("_tier")?).await)?;
    let broken = SuppliedSchema::new(None, format.kind.clone(), format.text("broken")?);
    refuse("broken", post_schema(&settings, CUSTOMERS.into(), broken).await)?;
    let message = codecs::encode(&settings, format, &format.strategy("")?).await?;
    let nickname = post_schema(&settings, CUSTOMERS.into(), format.customer("_nickname")?).await?;
    registered("register nickname", &nickname);
    say("encode", json!({"message": hex(&message)}));
    Ok(())
}

/// The client asks about what a schema refers to as well, and doesn't escape a slash in the subject when it asks.
async fn check(format: &Format) -> Outcome {
    let settings = settings()?;
    let subject = "shop-address";
    let customer = post_schema(&settings, CUSTOMERS.into(), format.customer_with("", subject)?).await?;
    registered("register customer", &customer);
    for name in ["_nickname", "_tier"] {
        let fits = is_compatible_schema(&settings, CUSTOMERS.into(), format.customer_with(name, subject)?).await?;
        say("compatible", json!({"name": format!("customer{name}"), "given": {"is_compatible": fits}}));
    }
    let slash = is_compatible_schema(&settings, "shop/address".into(), format.address()?).await;
    refuse("compatible with a slash", slash)
}

async fn decode(format: &Format, message: &str) -> Outcome {
    let value = codecs::decode(&settings()?, format, &unhex(message)?).await?;
    say("decode", json!({"value": value}));
    Ok(())
}

async fn read(format: &Format, message: &str) -> Outcome {
    decode(format, message).await?;
    let settings = settings()?;
    let bytes = unhex(message)?;
    let id = u32::from_be_bytes(bytes[1..5].try_into()?);
    registered("by id", &get_schema_by_id(id, &settings).await?);
    registered("latest", &get_schema_by_subject_and_version(&settings, CUSTOMERS, None).await?);
    registered("version", &get_schema_by_subject_and_version(&settings, CUSTOMERS, Some(1)).await?);
    let address = get_schema_by_subject_and_version(&settings, format.subject, None).await?;
    let guid = address.guid.as_deref().ok_or("no guid")?;
    registered("by guid", &get_schema_by_guid(guid, &settings).await?);
    say("subjects", json!({"given": get_all_subjects(&settings).await?}));
    say("versions", json!({"given": get_all_versions(&settings, CUSTOMERS.into()).await?}));
    refuse("unknown subject", get_schema_by_subject_and_version(&settings, "nobody-value", None).await)?;
    refuse("unknown version", get_schema_by_subject_and_version(&settings, CUSTOMERS, Some(99)).await)?;
    refuse("unknown id", get_schema_by_id(i32::MAX as u32, &settings).await)?;
    refuse("unknown guid", get_schema_by_guid("00000000-0000-0000-0000-000000000000", &settings).await)
}

async fn headers(format: &Format) -> Outcome {
    let settings = settings()?;
    let (header, message) = codecs::encode_with_header(&settings, format, &format.strategy("")?).await?;
    let value = codecs::decode_with_header(&settings, format, &header.value, &message).await?;
    say("header", json!({"name": header.name, "header": hex(&header.value), "message": hex(&message), "value": value}));
    Ok(())
}

async fn refused(format: &Format) -> Outcome {
    refuse("refused", post_schema(&settings()?, format.subject.into(), format.address()?).await)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    (0..text.len()).step_by(2).map(|at| Ok(u8::from_str_radix(&text[at..at + 2], 16)?)).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = env::args().collect();
    let format = format(&words[2]);
    match words[1].as_str() {
        "write" => write(&format).await,
        "read" => read(&format, &words[3]).await,
        "check" => check(&format).await,
        "decode" => decode(&format, &words[3]).await,
        "headers" => headers(&format).await,
        "refused" => refused(&format).await,
        other => Err(format!("there is no phase {other}").into()),
    }
}
