//! Messages by the client's encoders and decoders, of which each format has a pair.

use std::error::Error;

use schema_registry_converter::async_impl::avro::{AvroDecoder, AvroEncoder};
use schema_registry_converter::async_impl::json::{JsonDecoder, JsonEncoder};
use schema_registry_converter::async_impl::proto_decoder::ProtoDecoder;
use schema_registry_converter::async_impl::proto_encoder::ProtoEncoder;
use schema_registry_converter::async_impl::proto_raw::ProtoRawDecoder;
use schema_registry_converter::async_impl::schema_registry::SrSettings;
use schema_registry_converter::prost_reflect::Value as ProtoValue;
use schema_registry_converter::schema_registry_common::{SchemaIdHeader, SchemaType, SubjectNameStrategy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Format;

const MESSAGE: &str = "shop.Customer";

type Fallible<T> = Result<T, Box<dyn Error>>;

#[derive(Serialize, Deserialize)]
struct Address {
    city: String,
}

#[derive(Serialize, Deserialize)]
struct Customer {
    name: String,
    home: Address,
}

fn ada() -> Customer {
    Customer { name: "Ada".into(), home: Address { city: "Wien".into() } }
}

pub async fn encode(settings: &SrSettings, format: &Format, strategy: &SubjectNameStrategy) -> Fallible<Vec<u8>> {
    let settings = settings.clone();
    Ok(match format.kind {
        SchemaType::Avro => AvroEncoder::new(settings).encode_struct(ada(), strategy).await?,
        SchemaType::Json => JsonEncoder::new(settings).encode(&json!(ada()), strategy.clone()).await?,
        _ => ProtoEncoder::new(settings).encode_json(&json!(ada()), MESSAGE, strategy).await?,
    })
}

pub async fn decode(settings: &SrSettings, format: &Format, bytes: &[u8]) -> Fallible<Value> {
    let settings = settings.clone();
    match format.kind {
        SchemaType::Avro => from_avro(AvroDecoder::new(settings).decode(Some(bytes)).await?.value),
        SchemaType::Json => Ok(JsonDecoder::new(settings).decode(Some(bytes)).await?.ok_or("null")?.value),
        _ => {
            let raw = ProtoRawDecoder::new(settings.clone()).decode(Some(bytes)).await?.ok_or("null")?;
            if raw.full_name.as_str() != MESSAGE {
                return Err(format!("the raw decoder found a {}", raw.full_name).into());
            }
            from_protobuf(ProtoDecoder::new(settings).decode(Some(bytes)).await?)
        }
    }
}

pub async fn encode_with_header(
    settings: &SrSettings,
    format: &Format,
    strategy: &SubjectNameStrategy,
) -> Fallible<(SchemaIdHeader, Vec<u8>)> {
    let settings = settings.clone();
    let (message, header) = match format.kind {
        SchemaType::Avro => AvroEncoder::new(settings).encode_struct_with_header_id(ada(), strategy, false).await?,
        SchemaType::Json => {
            JsonEncoder::new(settings).encode_with_header_id(&json!(ada()), strategy.clone(), false).await?
        }
        _ => {
            let encoder = ProtoEncoder::new(settings);
            encoder.encode_json_with_header_id(&json!(ada()), MESSAGE, strategy, false).await?
        }
    };
    Ok((header, message))
}

pub async fn decode_with_header(
    settings: &SrSettings,
    format: &Format,
    header: &[u8],
    bytes: &[u8],
) -> Fallible<Value> {
    let (settings, header, bytes) = (settings.clone(), Some(header), Some(bytes));
    match format.kind {
        SchemaType::Avro => from_avro(AvroDecoder::new(settings).decode_with_header_id(header, bytes).await?.value),
        SchemaType::Json => {
            Ok(JsonDecoder::new(settings).decode_with_header_id(header, bytes).await?.ok_or("null")?.value)
        }
        _ => from_protobuf(ProtoDecoder::new(settings).decode_with_header_id(header, bytes).await?),
    }
}

fn from_avro(value: apache_avro::types::Value) -> Fallible<Value> {
    Ok(json!(apache_avro::from_value::<Customer>(&value)?))
}

fn from_protobuf(value: ProtoValue) -> Fallible<Value> {
    match value {
        ProtoValue::Message(message) => Ok(serde_json::to_value(&message)?),
        other => Err(format!("no message: {other:?}").into()),
    }
}
