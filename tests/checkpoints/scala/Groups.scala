package schemadesk.fixtures

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

case class Visit(id: Long, page: String)
case class Visits(visits: Int, page: String)
case class Seen(id: Long, visits: Int)

/** What has no Python form: flatMapGroupsWithState and mapGroupsWithState, over rows with id and page. */
object Groups {
  private def count(id: Long, rows: Iterator[Visit], state: GroupState[Visits]): Seen = {
    val listed = rows.toList
    val visits = state.getOption.map(_.visits).getOrElse(0) + listed.size
    state.update(Visits(visits, listed.lastOption.map(_.page).orNull))
    Seen(id, visits)
  }

  def flatMap(rows: DataFrame): DataFrame = {
    val session = rows.sparkSession
    import session.implicits._
    rows
      .as[Visit]
      .groupByKey(_.id)
      .flatMapGroupsWithState[Visits, Seen](OutputMode.Update, GroupStateTimeout.ProcessingTimeTimeout) {
        (id, visits, state) => Iterator(count(id, visits, state))
      }
      .toDF()
  }

  def map(rows: DataFrame): DataFrame = {
    val session = rows.sparkSession
    import session.implicits._
    rows
      .as[Visit]
      .groupByKey(_.id)
      .mapGroupsWithState[Visits, Seen](GroupStateTimeout.NoTimeout)(count _)
      .toDF()
  }
}
