import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

/**
 * Answers one JSON object a line: {"schema": text, "references": [text]} with what the Java parser makes of it, and
 * {"reader": text, "writer": text} with what SchemaCompatibility says of the pair; with {"data": [hexadecimal bytes of the
 * writer]} besides, with what GenericDatumReader makes of each.
 */
public class AvroOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer =
          question.has("data") ? decode(question) : question.has("reader") ? judge(question) : parse(question);
      out.println(JSON.writeValueAsString(answer));
    }
    out.flush();
  }

  private static ObjectNode parse(JsonNode question) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      Schema.Parser parser = new Schema.Parser();
      List<Schema> references = new ArrayList<>();
      for (JsonNode text : question.path("references")) {
        references.add(parser.parse(text.textValue()));
      }
      Schema schema = parser.parse(question.get("schema").textValue());
      answer.put("canonical", schema.toString(references, false));
      answer.put("parsing_form", SchemaNormalization.toParsingForm(schema));
      answer.put("logical_type", schema.getLogicalType() == null ? null : schema.getLogicalType().getName());
    } catch (Exception | StackOverflowError error) {
      answer.put("error", String.valueOf(error));
    }
    return answer;
  }

  private static ObjectNode decode(JsonNode question) {
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode read = answer.putArray("read");
    for (JsonNode hex : question.get("data")) {
      ObjectNode one = read.addObject();
      try {
        Schema reader = new Schema.Parser().parse(question.get("reader").textValue());
        Schema writer = new Schema.Parser().parse(question.get("writer").textValue());
        byte[] bytes = HexFormat.of().parseHex(hex.textValue());
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes, null);
        Object value = new GenericDatumReader<Object>(writer, reader).read(null, decoder);
        if (!decoder.isEnd()) {
          throw new IllegalStateException("bytes are left over");
        }
        one.set("value", plain(value));
      } catch (Exception | StackOverflowError error) {
        one.put("error", String.valueOf(error));
      }
    }
    return answer;
  }

  /** A decoded value as JSON: bytes as characters U+0000 to U+00FF, numbers that JSON lacks as strings. */
  private static JsonNode plain(Object value) {
    if (value == null) {
      return JSON.nullNode();
    }
    if (value instanceof IndexedRecord record) {
      ObjectNode node = JSON.createObjectNode();
      for (Schema.Field field : record.getSchema().getFields()) {
        node.set(field.name(), plain(record.get(field.pos())));
      }
      return node;
    }
    if (value instanceof Map<?, ?> map) {
      ObjectNode node = JSON.createObjectNode();
      map.forEach((key, item) -> node.set(key.toString(), plain(item)));
      return node;
    }
    if (value instanceof Collection<?> items) {
      ArrayNode node = JSON.createArrayNode();
      items.forEach(item -> node.add(plain(item)));
      return node;
    }
    if (value instanceof GenericFixed fixed) {
      return JSON.getNodeFactory().textNode(new String(fixed.bytes(), StandardCharsets.ISO_8859_1));
    }
    if (value instanceof ByteBuffer buffer) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.duplicate().get(bytes);
      return JSON.getNodeFactory().textNode(new String(bytes, StandardCharsets.ISO_8859_1));
    }
    if (value instanceof Boolean || value instanceof Integer || value instanceof Long) {
      return JSON.valueToTree(value);
    }
    if (value instanceof Number number) {
      double wide = number.doubleValue();
      return Double.isFinite(wide) ? JSON.getNodeFactory().numberNode(wide) : JSON.getNodeFactory().textNode("" + wide);
    }
    return JSON.getNodeFactory().textNode(value.toString());
  }

  private static ObjectNode judge(JsonNode question) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      Schema reader = new Schema.Parser().parse(question.get("reader").textValue());
      Schema writer = new Schema.Parser().parse(question.get("writer").textValue());
      SchemaCompatibility.SchemaCompatibilityResult result =
          SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult();
      answer.put("verdict", result.getCompatibility().name());
      ArrayNode items = answer.putArray("items");
      for (SchemaCompatibility.Incompatibility item : result.getIncompatibilities()) {
        items.addArray().add(item.getType().name()).add(item.getLocation()).add(item.getMessage());
      }
    } catch (Exception | StackOverflowError error) {
      answer.put("error", String.valueOf(error));
    }
    return answer;
  }
}
