package main

import (
	"github.com/twmb/franz-go/pkg/sr"
)

func (p *program) policies() {
	types, err := p.client.SupportedTypes(p.ctx)
	did("types", types, err)
	_, err = p.client.CreateSchema(p.ctx, p.subject, p.schema("address"))
	check("address", err)
	p.levels()
	p.modes()
	p.contracts()
	p.imports()
	p.contexts()
}

func (p *program) levels() {
	sayLevel("global level", p.client.Compatibility(p.ctx)[0])
	refuse("no level of its own", p.client.Compatibility(p.ctx, p.subject)[0].Err)
	sayLevel("level in scope", p.client.Compatibility(sr.WithParams(p.ctx, sr.DefaultToGlobal), p.subject)[0])
	wanted := sr.SetCompatibility{Level: sr.CompatFullTransitive, Normalize: true, Group: "major"}
	sayLevel("set level", p.client.SetCompatibility(p.ctx, wanted, p.subject)[0])
	sayLevel("own level", p.client.Compatibility(p.ctx, p.subject)[0])
	check("reset level", p.client.ResetCompatibility(p.ctx, p.subject)[0].Err)
	refuse("level after reset", p.client.Compatibility(p.ctx, p.subject)[0].Err)
	refuse("reset twice", p.client.ResetCompatibility(p.ctx, p.subject)[0].Err)
}

func sayLevel(step string, found sr.CompatibilityResult) {
	check(step, found.Err)
	say(step, facts{"level": found.Level.String(), "normalize": found.Normalize, "group": found.Group})
}

func (p *program) modes() {
	sayMode("global mode", p.client.Mode(p.ctx)[0])
	refuse("no mode of its own", p.client.Mode(p.ctx, p.subject)[0].Err)
	sayMode("mode in scope", p.client.Mode(sr.WithParams(p.ctx, sr.DefaultToGlobal), p.subject)[0])
	sayMode("set mode", p.client.SetMode(p.ctx, sr.ModeReadOnly, p.subject)[0])
	_, err := p.client.RegisterSchema(p.ctx, p.subject, p.schema("customer"), -1, -1)
	refuse("register in READONLY", err)
	sayMode("reset mode", p.client.ResetMode(p.ctx, p.subject)[0])
	refuse("mode after reset", p.client.Mode(p.ctx, p.subject)[0].Err)
}

func sayMode(step string, found sr.ModeResult) {
	check(step, found.Err)
	say(step, facts{"mode": found.Mode.String()})
}

func (p *program) contracts() {
	schema := p.schema("address")
	schema.SchemaMetadata = &sr.SchemaMetadata{
		Tags:       map[string][]string{"Address.city": {"PII"}},
		Properties: map[string]string{"owner": "shop"},
		Sensitive:  []string{"owner"},
	}
	schema.SchemaRuleSet = &sr.SchemaRuleSet{DomainRules: []sr.SchemaRule{{
		Name: "city", Kind: sr.SchemaRuleKindCondition, Mode: sr.SchemaRuleModeWrite, Type: "CEL",
		Tags: []string{"PII"}, Expr: "message.city != ''", Params: map[string]string{"a": "b"}, OnFailure: "ERROR",
	}}}
	created, err := p.client.CreateSchema(sr.WithParams(p.ctx, sr.Normalize), "contracts-value", schema)
	did("contract", created, err)
	fetched, err := p.client.SchemaByID(p.ctx, created.ID)
	did("contract by id", fetched, err)
}

func (p *program) imports() {
	_, err := p.client.RegisterSchema(p.ctx, "imported-value", p.schema("address"), 4711, 7)
	refuse("given id outside IMPORT", err)
	refuse("IMPORT with schemas there", p.client.SetMode(p.ctx, sr.ModeImport)[0].Err)
	sayMode("IMPORT", p.client.SetMode(sr.WithParams(p.ctx, sr.Force), sr.ModeImport, "imported-value")[0])
	schema := p.schema("address")
	schema.SchemaMetadata = &sr.SchemaMetadata{Properties: map[string]string{"copied": "yes"}}
	id, err := p.client.RegisterSchema(p.ctx, "imported-value", schema, 4711, 7)
	did("imported", id, err)
	sayMode("end of IMPORT", p.client.ResetMode(p.ctx, "imported-value")[0])
}

func (p *program) contexts() {
	inside := sr.InContext(p.ctx, ".shop")
	created, err := p.client.CreateSchema(inside, customers, p.schema("address"))
	did("in context", created, err)
	subjects, err := p.client.Subjects(inside)
	did("subjects in context", subjects, err)
	contexts, err := p.client.Contexts(p.ctx)
	did("contexts", contexts, err)
	refuse("context that isn't empty", p.client.DeleteContext(p.ctx, ".shop"))
	_, err = p.client.DeleteSubject(inside, customers, sr.SoftDelete)
	check("delete in context", err)
	_, err = p.client.DeleteSubject(inside, customers, sr.HardDelete)
	check("delete in context", err)
	check("delete context", p.client.DeleteContext(p.ctx, ".shop"))
	contexts, err = p.client.Contexts(p.ctx)
	did("contexts left", contexts, err)
}
