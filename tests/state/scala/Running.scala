package schemadesk.restarts

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths, StandardOpenOption}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.types.StructType

/** What one version of an application keeps; its variables come from the generated subclasses. */
abstract class Application(report: String) extends StatefulProcessor[Long, Long, Long] {
  protected def declare(): Unit
  protected def read(): Seq[(String, Any)]
  protected def write(): Unit

  override def init(mode: OutputMode, time: TimeMode): Unit = declare()

  override def handleInputRows(key: Long, rows: Iterator[Long], timers: TimerValues): Iterator[Long] = {
    rows.foreach(_ => ())
    val lines = read().map { case (name, seen) => s"""{"variable": ${Json.of(name)}, "read": ${Json.of(seen)}}""" }
    Files.write(
      Paths.get(report),
      lines.mkString("", "\n", "\n").getBytes(UTF_8),
      StandardOpenOption.CREATE,
      StandardOpenOption.APPEND
    )
    write()
    Iterator.empty
  }
}

/** Scala's values as JSON: case classes with their fields, None and Some by their names, what JSON lacks as text. */
object Json {
  def of(value: Any): String = value match {
    case null => "null"
    case None => quoted("None")
    case Some(inner) => s"""{"Some": ${of(inner)}}"""
    case _: Boolean | _: Byte | _: Short | _: Int | _: Long | _: Float | _: Double => value.toString
    case map: scala.collection.Map[_, _] => map.toSeq.map { case (k, v) => Seq(k, v) }.map(of).mkString("[", ", ", "]")
    case listed: Iterable[_] => listed.map(of).mkString("[", ", ", "]")
    case fields: Product =>
      val named = fields.productElementNames.zip(fields.productIterator)
      named.map { case (name, each) => s"${quoted(name)}: ${of(each)}" }.mkString("{", ", ", "}")
    case other => quoted(other.toString)
  }

  private def quoted(text: String): String =
    text.flatMap {
      case '"' => "\\\""
      case '\\' => "\\\\"
      case other if other < ' ' => f"\\u${other.toInt}%04x"
      case other => other.toString
    }.mkString("\"", "", "\"")
}

/** Starts an application on a checkpoint for one batch. */
object Running {
  def run(session: SparkSession, application: Application, checkpoint: String, seconds: Int): Boolean = {
    import session.implicits._
    val stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    val query = stream
      .load()
      .select("value")
      .as[Long]
      .groupByKey(_ => 7L)
      .transformWithState(application, TimeMode.None(), OutputMode.Update())
      .writeStream
      .format("noop")
      .outputMode("update")
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.Once())
      .start()
    try query.awaitTermination(seconds * 1000L)
    finally query.stop()
  }

  /** Schemas by name of the variable, and of a map's keys: what a plan declares. */
  def schemas(listed: (String, StructType)*): java.util.Map[String, String] = {
    val made = new java.util.LinkedHashMap[String, String]()
    listed.foreach { case (name, schema) => made.put(name, schema.json) }
    made
  }
}
