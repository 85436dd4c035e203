import java.sql.*;
import java.util.Properties;

/** What a program on the Java driver does: metadata, statements, prepared statements, refusals. */
public class Clients {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.setProperty("user", args[1]);
        settings.setProperty("password", args[2]);
        settings.setProperty("sslmode", "require");
        settings.setProperty("prepareThreshold", "2");
        String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/discreet";
        try (Connection connection = DriverManager.getConnection(url, settings)) {
            DatabaseMetaData about = connection.getMetaData();
            try (ResultSet tables = about.getTables(null, "public", "%", new String[] {"TABLE"})) {
                while (tables.next()) System.out.println("table " + tables.getString("TABLE_NAME"));
            }
            try (ResultSet columns = about.getColumns(null, "public", "people", "%")) {
                while (columns.next())
                    System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
            }
            try (ResultSet keys = about.getPrimaryKeys(null, "public", "people")) {
                while (keys.next()) System.out.println("key " + keys.getString("COLUMN_NAME"));
            }
            try (Statement statement = connection.createStatement();
                 ResultSet rows = statement.executeQuery("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex")) {
                while (rows.next()) System.out.println("row " + rows.getString(1) + " " + rows.getLong("n"));
                SQLWarning notice = statement.getWarnings();
                System.out.println("notice " + (notice == null ? "" : notice.getMessage()));
            }
            try (PreparedStatement statement = connection.prepareStatement("SELECT COUNT(*) AS n, AVG(salary) AS mean FROM people WHERE age < ? AND sex = ?")) {
                System.out.println("described " + statement.getMetaData().getColumnTypeName(1) + " " + statement.getMetaData().getColumnTypeName(2));
                for (int turn = 0; turn < 5; turn++) {
                    statement.setInt(1, 40);
                    statement.setString(2, "female");
                    try (ResultSet rows = statement.executeQuery()) {
                        rows.next();
                        System.out.println("prepared " + rows.getLong("n") + " " + rows.getDouble("mean"));
                    }
                }
            }
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(1);
                try (ResultSet rows = statement.executeQuery("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex")) {
                    while (rows.next()) System.out.println("fetched " + rows.getString(1));
                }
                statement.executeQuery("SELECT salary FROM people");
            } catch (SQLException refused) {
                System.out.println("refused " + refused.getSQLState());
            }
            connection.rollback();
            System.out.println("valid " + connection.isValid(5));
        }
    }
}
