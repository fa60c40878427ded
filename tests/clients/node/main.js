// Drives @kafkajs/confluent-schema-registry against a server; one JSON line a step.
//
//     node main.js write AVRO|JSON|PROTOBUF      registers, is refused, encodes
//     node main.js read AVRO|JSON|PROTOBUF HEX   fetches, decodes, asks for what isn't there
//     node main.js decode AVRO|JSON|PROTOBUF HEX decodes alone
//     node main.js names AVRO NAME...            registers under odd names
//     node main.js refused AVRO                  registers without the right to
//
// REGISTRY_URL, REGISTRY_CONTEXT, REGISTRY_TOKEN say where and who; SCHEMAS names the folder of the schemas.
'use strict'

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const ADA = { name: 'Ada', home: { city: 'Wien' } }
const CUSTOMERS = 'customers-value'
const FORMATS = {
  AVRO: { ending: 'avsc', subject: 'shop.Address', reference: 'shop.Address' },
  JSON: { ending: 'json', subject: 'address.json', reference: 'https://shop.example/address.json' },
  PROTOBUF: { ending: 'proto', subject: 'shop/address.proto', reference: 'shop/address.proto' },
}

const say = (step, facts) => process.stdout.write(JSON.stringify({ step, ...facts }) + '\n')

function connect() {
  const { REGISTRY_URL, REGISTRY_CONTEXT, REGISTRY_TOKEN } = process.env
  const host = REGISTRY_CONTEXT ? `${REGISTRY_URL}/contexts/${REGISTRY_CONTEXT}` : REGISTRY_URL
  const auth = REGISTRY_TOKEN ? { username: 'tests', password: REGISTRY_TOKEN } : undefined
  return new SchemaRegistry({ host, auth })
}

function schema(type, name, references) {
  const text = readFileSync(join(process.env.SCHEMAS, type.toLowerCase(), `${name}.${FORMATS[type].ending}`), 'utf8')
  return { type: SchemaType[type], schema: text, references }
}

const toAddress = type => [{ name: FORMATS[type].reference, subject: FORMATS[type].subject, version: 1 }]
const customer = (type, variant) => schema(type, `customer${variant}`, toAddress(type))

// What the client throws, as it throws it; a call that goes through is a failure.
async function refusal(step, call) {
  let given
  try {
    given = await call()
  } catch (error) {
    say(step, { error: error.name, status: error.status, unauthorized: error.unauthorized, message: error.message })
    return
  }
  throw new Error(`${step}: expected a refusal, got ${JSON.stringify(given)}`)
}

async function write(type) {
  const registry = connect()
  const options = { subject: CUSTOMERS }
  say('register address', await registry.register(schema(type, 'address'), { subject: FORMATS[type].subject }))
  const first = await registry.register(customer(type, ''), options)
  say('register customer', first)
  say('register again', await connect().register(customer(type, ''), options))
  await refusal('incompatible', () => registry.register(customer(type, '_tier'), options))
  await refusal('another level', () => registry.register(customer(type, ''), { ...options, compatibility: 'FULL' }))
  say('register nickname', await registry.register(customer(type, '_nickname'), options))
  say('encode', { message: (await registry.encode(first.id, ADA)).toString('hex') })
  await refusal('unfit value', () => registry.encode(first.id, { name: 1 }))
}

async function read(type, message) {
  const registry = connect()
  const bytes = Buffer.from(message, 'hex')
  say('decode', { value: await registry.decode(bytes) })
  say('decode again', { value: await registry.decode(bytes) })
  if (type === 'AVRO') {
    const address = JSON.parse(schema(type, 'address').schema)
    const reader = JSON.parse(schema(type, 'customer_nickname').schema)
    reader.fields[1].type = address // the client hands no references to a reader's schema
    say('decode as nickname', { value: await registry.decode(bytes, { AVRO: { readerSchema: reader } }) })
  }
  say('latest', { id: await registry.getLatestSchemaId(CUSTOMERS) })
  say('version', { id: await registry.getRegistryId(CUSTOMERS, 1) })
  const { subject } = FORMATS[type]
  say('look up', { id: await registry.getRegistryIdBySchema(subject, schema(type, 'address')) })
  await refusal('look up of another', () => registry.getRegistryIdBySchema(CUSTOMERS, schema(type, 'address')))
  await refusal('unknown subject', () => registry.getLatestSchemaId('nobody-value'))
  await refusal('unknown version', () => registry.getRegistryId(CUSTOMERS, 99))
  await refusal('unknown id', () => registry.getSchema(2147483647))
}

async function decode(type, message) {
  say('decode', { value: await connect().decode(Buffer.from(message, 'hex')) })
}

async function names(type, ...subjects) {
  for (const subject of subjects) {
    const { id } = await connect().register(schema(type, 'address'), { subject })
    say(subject, { id, latest: await connect().getLatestSchemaId(subject) })
  }
}

async function refused(type) {
  await refusal('refused', () => connect().register(schema(type, 'address'), { subject: FORMATS[type].subject }))
}

const [phase, ...rest] = process.argv.slice(2)
Promise.resolve({ write, read, decode, names, refused }[phase](...rest)).catch(error => {
  process.stderr.write(`${error.stack}\n`)
  process.exitCode = 1
})
