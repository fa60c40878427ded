// Command clients drives franz-go's schema registry client against a server; one JSON line a step.
//
//	clients write AVRO|JSON|PROTOBUF      registers, checks, is refused, encodes
//	clients read AVRO|JSON|PROTOBUF HEX   fetches, decodes, asks for what isn't there
//	clients decode AVRO|JSON|PROTOBUF HEX decodes alone
//	clients delete AVRO|JSON|PROTOBUF     soft and permanent, in the wrong order too
//	clients policies AVRO                 levels, modes, contexts, contracts, given ids
//	clients names AVRO NAME...            registers under odd names
//	clients refused AVRO                  registers without the right to
//	clients registry                      serves franz-go's registry until standard input ends
//
// REGISTRY_URL, REGISTRY_CONTEXT and REGISTRY_TOKEN say where and who; SCHEMAS names the folder of the schemas.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

const customers = "customers-value"

type format struct {
	kind                       sr.SchemaType
	ending, subject, reference string
}

var formats = map[string]format{
	"AVRO":     {sr.TypeAvro, "avsc", "shop.Address", "shop.Address"},
	"JSON":     {sr.TypeJSON, "json", "address.json", "https://shop.example/address.json"},
	"PROTOBUF": {sr.TypeProtobuf, "proto", "shop/address.proto", "shop/address.proto"},
}

type facts map[string]any

// program is one run: the client, and the format that it is about.
type program struct {
	format
	ctx    context.Context
	client *sr.Client
}

func main() {
	if os.Args[1] == "registry" {
		serveRegistry()
		return
	}
	phases := map[string]func(*program){
		"write":    (*program).write,
		"read":     (*program).read,
		"decode":   func(p *program) { p.decode() },
		"delete":   (*program).delete,
		"policies": (*program).policies,
		"names":    (*program).names,
		"refused":  (*program).refused,
	}
	client, err := sr.NewClient(options()...)
	check("the client", err)
	phases[os.Args[1]](&program{formats[os.Args[2]], context.Background(), client})
}

func options() []sr.ClientOpt {
	found := []sr.ClientOpt{sr.URLs(os.Getenv("REGISTRY_URL"))}
	if token := os.Getenv("REGISTRY_TOKEN"); token != "" {
		found = append(found, sr.BearerToken(token))
	}
	if name := os.Getenv("REGISTRY_CONTEXT"); name != "" {
		found = append(found, sr.DefaultSchemaContext(name))
	}
	return found
}

// schema is one of the files, with the references that it needs.
func (p *program) schema(name string) sr.Schema {
	folder := strings.ToLower(os.Args[2])
	text, err := os.ReadFile(filepath.Join(os.Getenv("SCHEMAS"), folder, name+"."+p.ending))
	check(name, err)
	found := sr.Schema{Schema: string(text), Type: p.kind}
	if strings.HasPrefix(name, "customer") {
		found.References = []sr.SchemaReference{{Name: p.reference, Subject: p.subject, Version: 1}}
	}
	return found
}

func say(step string, found facts) {
	line := facts{"step": step}
	for name, value := range found {
		line[name] = value
	}
	check(step, json.NewEncoder(os.Stdout).Encode(line))
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

// did says what a call that has to work gave.
func did[T any](step string, given T, err error) T {
	check(step, err)
	say(step, facts{"given": given})
	return given
}

// refuse says how a call was refused; one that goes through is a failure.
func refuse(step string, err error) {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		check(step, fmt.Errorf("expected an answer of refusal, got %v", err))
	}
	name := answer.SchemaError().Name
	say(step, facts{"status": answer.StatusCode, "code": answer.ErrorCode, "message": answer.Message, "error": name})
}

func (p *program) names() {
	for _, subject := range os.Args[3:] {
		id, err := p.client.RegisterSchema(p.ctx, subject, p.schema("address"), -1, -1)
		check(subject, err)
		latest, err := p.client.SchemaByVersion(p.ctx, subject, -1)
		check(subject, err)
		say(subject, facts{"id": id, "latest": latest.ID})
	}
}

func (p *program) refused() {
	_, err := p.client.RegisterSchema(p.ctx, p.subject, p.schema("address"), -1, -1)
	refuse("refused", err)
}
