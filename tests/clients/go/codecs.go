package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

type address struct {
	City string `avro:"city" json:"city"`
}

type customer struct {
	Name string  `avro:"name" json:"name"`
	Home address `avro:"home" json:"home"`
}

func ada() *customer {
	return &customer{"Ada", address{"Wien"}}
}

// serde encodes and decodes with the schema, whose references are fetched from the server.
func (p *program) serde(id int, schema sr.Schema) *sr.Serde {
	files := map[string]string{}
	p.fetchReferences(schema, files)
	options := []sr.EncodingOpt{sr.GenerateFn(func() any { return new(customer) })}
	switch p.kind {
	case sr.TypeAvro:
		options = append(options, avroCodec(schema.Schema, files)...)
	case sr.TypeProtobuf:
		options = append(options, p.protobufCodec(schema.Schema, files)...)
	default:
		options = append(options, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	}
	serde := new(sr.Serde)
	serde.Register(id, new(customer), options...)
	return serde
}

// fetchReferences puts the texts that the schema refers to, and those that these refer to, under their names.
func (p *program) fetchReferences(schema sr.Schema, files map[string]string) {
	for _, reference := range schema.References {
		if _, known := files[reference.Name]; known {
			continue
		}
		found, err := p.client.SchemaByVersion(p.ctx, reference.Subject, reference.Version)
		check("reference", err)
		files[reference.Name] = found.Schema.Schema
		p.fetchReferences(found.Schema, files)
	}
}

func avroCodec(text string, files map[string]string) []sr.EncodingOpt {
	cache := new(avro.SchemaCache)
	for name, file := range files {
		_, err := avro.ParseWithCache(file, "", cache)
		check(name, err)
	}
	schema, err := avro.ParseWithCache(text, "", cache)
	check("the Avro schema", err)
	return []sr.EncodingOpt{
		sr.EncodeFn(func(value any) ([]byte, error) { return avro.Marshal(schema, value) }),
		sr.DecodeFn(func(data []byte, value any) error { return avro.Unmarshal(schema, data, value) }),
	}
}

func (p *program) protobufCodec(text string, files map[string]string) []sr.EncodingOpt {
	files["schema.proto"] = text
	open := func(path string) (io.ReadCloser, error) {
		if file, known := files[path]; known {
			return io.NopCloser(strings.NewReader(file)), nil
		}
		return nil, fmt.Errorf("no reference is called %s", path)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: open}),
	}
	found, err := compiler.Compile(p.ctx, "schema.proto")
	check("the Protobuf schema", err)
	message := found[0].Messages().Get(0)
	return []sr.EncodingOpt{
		sr.Index(0),
		sr.EncodeFn(func(value any) ([]byte, error) { return toProtobuf(message, value) }),
		sr.DecodeFn(func(data []byte, value any) error { return fromProtobuf(message, data, value) }),
	}
}

func toProtobuf(kind protoreflect.MessageDescriptor, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	message := dynamicpb.NewMessage(kind)
	if err := protojson.Unmarshal(text, message); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(message)
}

func fromProtobuf(kind protoreflect.MessageDescriptor, data []byte, value any) error {
	message := dynamicpb.NewMessage(kind)
	if err := proto.Unmarshal(data, message); err != nil {
		return err
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}
