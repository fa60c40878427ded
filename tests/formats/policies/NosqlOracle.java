import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.codehaus.jackson.JsonNode;
import org.codehaus.jackson.map.ObjectMapper;
import org.codehaus.jackson.node.ObjectNode;

/** Answers, line by line of JSON, what the checker of Oracle NoSQL Database's client says of a schema and a change. */
public class NosqlOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    Class<?> checker = Class.forName("oracle.kv.impl.api.avro.SchemaChecker");
    Method alone = checker.getDeclaredMethod("checkSchema", Schema.class, List.class, List.class);
    Method change = checker.getDeclaredMethod("checkEvolution", Schema.class, Schema.class, List.class, List.class);
    alone.setAccessible(true);
    change.setAccessible(true);
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      try {
        Schema fresh = new Schema.Parser().parse(question.get("new").getTextValue());
        List<String> errors = new ArrayList<>();
        List<String> warnings = new ArrayList<>();
        if (question.has("old")) {
          Schema stored = new Schema.Parser().parse(question.get("old").getTextValue());
          change.invoke(null, stored, fresh, errors, warnings);
        } else {
          alone.invoke(null, fresh, errors, warnings);
        }
        answer.put("errors", JSON.valueToTree(errors));
        answer.put("warnings", JSON.valueToTree(warnings));
      } catch (InvocationTargetException failure) {
        answer.put("failure", String.valueOf(failure.getCause()));
      } catch (RuntimeException failure) {
        answer.put("failure", "parser: " + failure);
      } catch (StackOverflowError failure) {
        answer.put("failure", "stack overflow");
      }
      out.println(JSON.writeValueAsString(answer));
    }
  }
}
