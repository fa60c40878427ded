import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;

/**
 * Answers one JSON object a line: {"schema": text, "references": [text]} with what the Java parser makes of it, and
 * {"reader": text, "writer": text} with what SchemaCompatibility says of the pair.
 */
public class AvroOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer = question.has("reader") ? judge(question) : parse(question);
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
