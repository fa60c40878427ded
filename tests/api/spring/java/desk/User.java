package desk;

import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;

/** What a reader's application has compiled in: the second version of the schema, with a default for `age`. */
public class User extends SpecificRecordBase {
    public static final Schema SCHEMA$ = new Schema.Parser().parse(
            "{\"type\":\"record\",\"name\":\"User\",\"namespace\":\"desk\",\"fields\":["
                    + "{\"name\":\"name\",\"type\":\"string\"},"
                    + "{\"name\":\"age\",\"type\":\"int\",\"default\":-1}]}");

    private CharSequence name;
    private int age;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public Object get(int field) {
        return field == 0 ? name : (Object) age;
    }

    @Override
    public void put(int field, Object value) {
        if (field == 0) {
            name = (CharSequence) value;
        } else {
            age = (Integer) value;
        }
    }
}
