import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.avro.AvroDeserializer;
import org.apache.spark.sql.avro.AvroSerializer;
import org.apache.spark.sql.avro.SchemaConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.SchemaHelper;
import org.apache.spark.sql.execution.streaming.state.StateSchemaCompatibilityChecker;
import org.apache.spark.sql.execution.streaming.state.StateStoreColFamilySchema;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Answers, line by line of JSON, what Spark's own classes do with state schemas: convert, check, read old rows. The
 * argument is a folder for schema files.
 */
public class SparkOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    java.nio.file.Path work = java.nio.file.Path.of(arguments[0]);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      try {
        if (question.has("avro")) {
          answer.put("avro", avro(struct(question.get("avro"))).toString());
        } else if (question.has("read")) {
          answer.put("read", read(struct(question.get("read").get(0)), struct(question.get("read").get(1))));
        } else {
          check(question, work, answer);
        }
      } catch (Throwable failure) {
        boolean named = failure instanceof SparkThrowable && ((SparkThrowable) failure).getCondition() != null;
        answer.put("error", named ? ((SparkThrowable) failure).getCondition() : failure.getClass().getSimpleName());
        answer.put("message", String.valueOf(failure.getMessage()));
      }
      out.println(JSON.writeValueAsString(answer));
    }
  }

  private static StructType struct(JsonNode json) {
    return (StructType) DataType.fromJson(json.toString());
  }

  private static Schema avro(StructType struct) {
    return SchemaConverters.toAvroTypeWithDefaults(struct);
  }

  private static void check(JsonNode question, java.nio.file.Path work, ObjectNode answer) throws Exception {
    StateStoreProviderId provider =
        new StateStoreProviderId(new StateStoreId(work.toString(), 0L, 0, "default"), UUID.randomUUID());
    List<Path> old = new ArrayList<>();
    for (JsonNode file : question.get("stored")) {
      Path path = new Path(work.toString(), old.size() + "_" + UUID.randomUUID());
      StateSchemaCompatibilityChecker writer = checker(provider, List.of(), path);
      writer.createSchemaFile(families(file), SchemaHelper.SchemaWriter$.MODULE$.createSchemaWriter(3));
      old.add(path);
    }
    Path fresh = new Path(work.toString(), "new_" + UUID.randomUUID());
    StateSchemaCompatibilityChecker checker = checker(provider, old, fresh);
    boolean evolves = question.get("evolution").asBoolean();
    boolean changed = checker.validateAndMaybeEvolveStateSchema(families(question.get("planned")), false, 3, evolves);
    answer.put("changed", changed);
    if (changed) {
      ObjectNode ids = answer.putObject("ids");
      for (StateStoreColFamilySchema family :
          CollectionConverters.asJava(checker(provider, List.of(fresh), null).readSchemaFile())) {
        ids.put(family.colFamilyName(), family.valueSchemaId());
      }
    }
  }

  private static StateSchemaCompatibilityChecker checker(StateStoreProviderId provider, List<Path> old, Path fresh) {
    return new StateSchemaCompatibilityChecker(
        provider, new Configuration(), CollectionConverters.asScala(old).toList(), Option.apply(fresh), true);
  }

  private static scala.collection.immutable.List<StateStoreColFamilySchema> families(JsonNode listed) {
    List<StateStoreColFamilySchema> families = new ArrayList<>();
    for (JsonNode family : listed) {
      StructType key = struct(family.get("key"));
      families.add(
          new StateStoreColFamilySchema(
              family.get("name").asText(),
              (short) 0,
              key,
              (short) family.path("id").asInt(0),
              struct(family.get("value")),
              Option.apply(new NoPrefixKeyStateEncoderSpec(key)),
              Option.empty()));
    }
    return CollectionConverters.asScala(families).toList();
  }

  /** The row that comes back when a full row of the stored schema is read with the planned one, as Spark's encoder does. */
  private static String read(StructType stored, StructType planned) throws Exception {
    Schema writer = avro(stored);
    Schema reader = avro(planned);
    Object written = new AvroSerializer(stored, writer, false).serialize(row(stored));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
    new GenericDatumWriter<Object>(writer).write(written, encoder);
    encoder.flush();
    Object datum =
        new GenericDatumReader<Object>(writer, reader)
            .read(null, DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null));
    InternalRow row =
        (InternalRow) new AvroDeserializer(reader, planned, "CORRECTED", false, "", -1).deserialize(datum).get();
    List<String> shown = new ArrayList<>();
    for (int position = 0; position < planned.size(); position++) {
      DataType type = planned.fields()[position].dataType();
      shown.add(row.isNullAt(position) ? "null" : String.valueOf(row.get(position, type)));
    }
    return String.join("|", shown);
  }

  private static InternalRow row(StructType struct) {
    Object[] values = new Object[struct.size()];
    for (int position = 0; position < values.length; position++) {
      StructField field = struct.fields()[position];
      values[position] = value(field.dataType());
    }
    return new GenericInternalRow(values);
  }

  private static Object value(DataType type) {
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new BigDecimal("1.5").setScale(decimal.scale()), decimal.precision(), decimal.scale());
    }
    switch (type.typeName()) {
      case "boolean":
        return true;
      case "byte":
        return (byte) 7;
      case "short":
        return (short) 700;
      case "integer":
      case "date":
        return 70_000;
      case "long":
      case "timestamp":
      case "timestamp_ntz":
        return 9_007_199_254_740_993L;
      case "float":
        return 1.5f;
      case "double":
        return 2.5d;
      case "string":
        return UTF8String.fromString("né");
      case "binary":
        return new byte[] {(byte) 0xff, 0x41};
      default:
        throw new IllegalArgumentException("no value for " + type.typeName());
    }
  }
}
