import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.IndexedRecord;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.cloud.stream.schema.SchemaReference;
import org.springframework.cloud.stream.schema.SchemaRegistrationResponse;
import org.springframework.cloud.stream.schema.avro.AvroSchemaRegistryClientMessageConverter;
import org.springframework.cloud.stream.schema.avro.DefaultSubjectNamingStrategy;
import org.springframework.cloud.stream.schema.client.ConfluentSchemaRegistryClient;
import org.springframework.cloud.stream.schema.client.DefaultSchemaRegistryClient;
import org.springframework.cloud.stream.schema.client.EnableSchemaRegistryClient;
import org.springframework.cloud.stream.schema.client.SchemaRegistryClient;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.http.client.support.BasicAuthenticationInterceptor;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.util.MimeType;
import org.springframework.web.client.RestTemplate;

/** Does with Spring's clients and message converter what each line on the standard input says, and answers in a line. */
public class SpringClients {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SchemaRegistryClient client;
    private AvroSchemaRegistryClientMessageConverter converter;

    /** An application that finds its client by configuration alone. */
    @Configuration
    @EnableCaching
    @EnableSchemaRegistryClient
    public static class Application {
        @Bean
        public CacheManager cacheManager() {
            return new ConcurrentMapCacheManager();
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        SpringClients clients = new SpringClients();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                clients.obey(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", String.valueOf(error.getMessage()));
                answer.put("cause", String.valueOf(error.getCause()));
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private void obey(JsonNode order, ObjectNode answer) throws Exception {
        switch (order.get("order").asText()) {
            case "client":
                client = makeClient(order);
                break;
            case "converter":
                converter = makeConverter(order);
                break;
            case "register":
                register(order, answer);
                break;
            case "fetch":
                answer.put("definition", fetch(order));
                break;
            case "write":
                write(order, answer);
                break;
            case "read":
                read(order, answer);
                break;
            default:
                throw new IllegalArgumentException(order.toString());
        }
    }

    private static SchemaRegistryClient makeClient(JsonNode order) {
        String endpoint = order.get("endpoint").asText();
        RestTemplate template = new RestTemplate();
        if (order.has("token")) {
            template.getInterceptors().add(new BasicAuthenticationInterceptor("token", order.get("token").asText()));
        }
        switch (order.get("kind").asText()) {
            case "default":
                DefaultSchemaRegistryClient own = new DefaultSchemaRegistryClient(template);
                own.setEndpoint(endpoint);
                return own;
            case "confluent":
                ConfluentSchemaRegistryClient confluent = new ConfluentSchemaRegistryClient(template);
                confluent.setEndpoint(endpoint);
                return confluent;
            default:
                return configuredClient(endpoint, order.get("cached").asBoolean());
        }
    }

    private static SchemaRegistryClient configuredClient(String endpoint, boolean cached) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("spring.cloud.stream.schemaRegistryClient.endpoint", endpoint);
        properties.put("spring.cloud.stream.schemaRegistryClient.cached", cached);
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("test", properties));
        context.register(Application.class);
        context.refresh();
        return context.getBean(SchemaRegistryClient.class);
    }

    private AvroSchemaRegistryClientMessageConverter makeConverter(JsonNode order) throws Exception {
        AvroSchemaRegistryClientMessageConverter made =
                new AvroSchemaRegistryClientMessageConverter(client, new ConcurrentMapCacheManager());
        made.setSubjectNamingStrategy(new DefaultSubjectNamingStrategy());
        if (order.has("prefix")) {
            made.setPrefix(order.get("prefix").asText());
        }
        if (order.has("readerSchema")) {
            made.setReaderSchema(resource(order.get("readerSchema")));
        }
        if (order.has("schemaLocation")) {
            made.setSchemaLocations(new ByteArrayResource[] {resource(order.get("schemaLocation"))});
        }
        made.afterPropertiesSet();
        return made;
    }

    private static ByteArrayResource resource(JsonNode text) {
        return new ByteArrayResource(text.asText().getBytes(StandardCharsets.UTF_8));
    }

    private void register(JsonNode order, ObjectNode answer) {
        SchemaRegistrationResponse done = client.register(
                order.get("subject").asText(), order.get("format").asText(), order.get("definition").asText());
        answer.put("id", done.getId());
        answer.put("subject", done.getSchemaReference().getSubject());
        answer.put("version", done.getSchemaReference().getVersion());
        answer.put("format", done.getSchemaReference().getFormat());
    }

    private String fetch(JsonNode order) {
        if (order.has("id")) {
            return client.fetch(order.get("id").asInt());
        }
        return client.fetch(new SchemaReference(
                order.get("subject").asText(), order.get("version").asInt(), order.get("format").asText()));
    }

    private void write(JsonNode order, ObjectNode answer) {
        Schema schema = new Schema.Parser().parse(order.get("schema").asText());
        GenericRecord record = new GenericData.Record(schema);
        for (Schema.Field field : schema.getFields()) {
            JsonNode value = order.get("values").get(field.name());
            record.put(field.name(), value.isInt() ? (Object) value.asInt() : value.asText());
        }
        MessageHeaders headers = new MessageHeaders(Collections.singletonMap(
                MessageHeaders.CONTENT_TYPE, (Object) MimeType.valueOf("application/*+avro")));
        Message<?> message = converter.toMessage(record, headers);
        answer.put("contentType", String.valueOf(message.getHeaders().get(MessageHeaders.CONTENT_TYPE)));
        answer.put("payload", Base64.getEncoder().encodeToString((byte[]) message.getPayload()));
    }

    private void read(JsonNode order, ObjectNode answer) {
        Message<byte[]> message = MessageBuilder
                .withPayload(Base64.getDecoder().decode(order.get("payload").asText()))
                .setHeader(MessageHeaders.CONTENT_TYPE, MimeType.valueOf(order.get("contentType").asText()))
                .build();
        Class<?> wanted = order.get("as").asText().equals("generic") ? GenericRecord.class : desk.User.class;
        IndexedRecord found = (IndexedRecord) converter.fromMessage(message, wanted);
        if (found == null) {
            throw new IllegalStateException("the converter doesn't take the message");
        }
        ObjectNode values = answer.putObject("values");
        for (Schema.Field field : found.getSchema().getFields()) {
            Object value = found.get(field.pos());
            if (value instanceof Integer) {
                values.put(field.name(), (Integer) value);
            } else {
                values.put(field.name(), String.valueOf(value));
            }
        }
    }
}
