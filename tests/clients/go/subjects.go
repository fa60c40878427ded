package main

import (
	"encoding/hex"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

func (p *program) write() {
	id, err := p.client.RegisterSchema(p.ctx, p.subject, p.schema("address"), -1, -1)
	check("register address", err)
	say("register address", facts{"id": id})
	customer, err := p.client.CreateSchema(p.ctx, customers, p.schema("customer"))
	check("register customer", err)
	say("register customer", facts{"id": customer.ID, "created": customer})
	id, err = p.client.RegisterSchema(p.ctx, customers, p.schema("customer"), -1, -1)
	check("register again", err)
	say("register again", facts{"id": id})
	p.checks()
	_, err = p.client.CreateSchema(p.ctx, customers, p.schema("customer_tier"))
	refuse("incompatible", err)
	_, err = p.client.CreateSchema(p.ctx, customers, p.schema("broken"))
	refuse("broken", err)
	nickname, err := p.client.CreateSchema(p.ctx, customers, p.schema("customer_nickname"))
	check("register nickname", err)
	say("register nickname", facts{"id": nickname.ID, "created": nickname})
	message, err := p.serde(customer.ID, customer.Schema).Encode(ada())
	check("encode", err)
	say("encode", facts{"message": hex.EncodeToString(message)})
}

func (p *program) checks() {
	for _, version := range []int{1, -1, -2} {
		for _, name := range []string{"customer_nickname", "customer_tier"} {
			verbose := sr.WithParams(p.ctx, sr.Verbose)
			found, err := p.client.CheckCompatibility(verbose, customers, version, p.schema(name))
			check("compatible", err)
			say("compatible", facts{"version": version, "name": name, "given": found})
		}
	}
	_, err := p.client.CheckCompatibility(p.ctx, customers, 99, p.schema("customer"))
	refuse("compatible with no version", err)
}

func (p *program) read() {
	id := p.decode()
	p.fetch(id)
	p.miss()
}

// decode fetches the schema whose id the message has, and gives that id.
func (p *program) decode() int {
	message, err := hex.DecodeString(os.Args[3])
	check("message", err)
	id, _, err := new(sr.ConfluentHeader).DecodeID(message)
	check("header", err)
	schema, err := p.client.SchemaByID(p.ctx, id)
	did("by id", schema, err)
	value, err := p.serde(id, schema).DecodeNew(message)
	check("decode", err)
	say("decode", facts{"value": value})
	return id
}

func (p *program) fetch(id int) {
	latest, err := p.client.SchemaByVersion(p.ctx, customers, -1)
	check("latest", err)
	say("latest", facts{"id": latest.ID, "given": latest})
	version, err := p.client.SchemaByVersion(p.ctx, customers, 1)
	check("version", err)
	say("version", facts{"id": version.ID, "given": version})
	text, err := p.client.SchemaTextByVersion(p.ctx, customers, 1)
	did("text of version", text, err)
	text, err = p.client.SchemaTextByID(p.ctx, id)
	did("text of id", text, err)
	address, err := p.client.LookupSchema(p.ctx, p.subject, p.schema("address"))
	check("look up", err)
	say("look up", facts{"id": address.ID, "given": address})
	byGUID, err := p.client.SchemaByGUID(p.ctx, address.GUID)
	did("by guid", byGUID, err)
	ids, err := p.client.SchemaIDsByGUID(p.ctx, address.GUID)
	did("ids of guid", ids, err)
	subjects, err := p.client.Subjects(p.ctx)
	did("subjects", subjects, err)
	subjects, err = p.client.Subjects(sr.WithParams(p.ctx, sr.SubjectPrefix("cust")))
	did("subjects by prefix", subjects, err)
	subjects, err = p.client.SubjectsByID(p.ctx, id)
	did("subjects of id", subjects, err)
	versions, err := p.client.SchemaVersionsByID(p.ctx, id)
	did("versions of id", versions, err)
	numbers, err := p.client.SubjectVersions(p.ctx, customers)
	did("versions", numbers, err)
	every, err := p.client.Schemas(p.ctx, customers)
	did("schemas of subject", every, err)
	every, err = p.client.AllSchemas(sr.WithParams(p.ctx, sr.LatestOnly))
	did("all schemas", every, err)
	every, err = p.client.SchemaReferences(p.ctx, p.subject, 1)
	check("referenced by", err)
	say("referenced by", facts{"ids": idsOf(every)})
}

func idsOf(schemas []sr.SubjectSchema) []int {
	ids := make([]int, len(schemas))
	for i, schema := range schemas {
		ids[i] = schema.ID
	}
	return ids
}

func (p *program) miss() {
	_, err := p.client.LookupSchema(p.ctx, customers, p.schema("address"))
	refuse("look up of another", err)
	_, err = p.client.SchemaByVersion(p.ctx, "nobody-value", -1)
	refuse("unknown subject", err)
	_, err = p.client.SchemaByVersion(p.ctx, customers, 99)
	refuse("unknown version", err)
	_, err = p.client.SchemaByID(p.ctx, 2147483647)
	refuse("unknown id", err)
	_, err = p.client.SchemaByGUID(p.ctx, "00000000-0000-0000-0000-000000000000")
	refuse("unknown guid", err)
}

func (p *program) delete() {
	_, err := p.client.DeleteSubject(p.ctx, customers, sr.HardDelete)
	refuse("subject permanent before soft", err)
	refuse("version permanent before soft", p.client.DeleteSchema(p.ctx, customers, 1, sr.HardDelete))
	_, err = p.client.DeleteSubject(p.ctx, p.subject, sr.SoftDelete)
	refuse("referenced", err)
	check("version", p.client.DeleteSchema(p.ctx, customers, 1, sr.SoftDelete))
	refuse("version twice", p.client.DeleteSchema(p.ctx, customers, 1, sr.SoftDelete))
	p.versions("versions left", p.client)
	p.versions("versions with deleted", p.client, sr.ShowDeleted)
	p.versions("versions deleted", p.client, sr.DeletedOnly)
	given, err := p.client.DeleteSubject(p.ctx, customers, sr.SoftDelete)
	did("subject", given, err)
	_, err = p.client.DeleteSubject(p.ctx, customers, sr.SoftDelete)
	refuse("subject twice", err)
	given, err = p.client.DeleteSubject(p.ctx, customers, sr.HardDelete)
	did("subject permanent", given, err)
	_, err = p.client.SubjectVersions(sr.WithParams(p.ctx, sr.ShowDeleted), customers)
	refuse("nothing left", err)
	check("address", p.client.DeleteSchema(p.ctx, p.subject, -1, sr.SoftDelete))
	check("address permanent", p.client.DeleteSchema(p.ctx, p.subject, 1, sr.HardDelete))
	subjects, err := p.client.Subjects(sr.WithParams(p.ctx, sr.ShowDeleted))
	did("subjects left", subjects, err)
}

func (p *program) versions(step string, client *sr.Client, params ...sr.Param) {
	found, err := client.SubjectVersions(sr.WithParams(p.ctx, params...), customers)
	did(step, found, err)
}
