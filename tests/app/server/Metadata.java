import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Properties;

/** Calls every method of java.sql.DatabaseMetaData and prints what came of it, one line each. */
public class Metadata {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("user", given[1]);
        settings.put("password", given[2]);
        settings.put("sslmode", given[3]);
        String place = "jdbc:postgresql://127.0.0.1:" + given[0] + "/" + given[4];
        try (Connection connection = DriverManager.getConnection(place, settings)) {
            DatabaseMetaData metadata = connection.getMetaData();
            Method[] methods = DatabaseMetaData.class.getMethods();
            Arrays.sort(methods, Comparator.comparing(Method::toString));
            for (Method method : methods) {
                if (method.getDeclaringClass() != DatabaseMetaData.class) {
                    continue;
                }
                String name = method.getName() + "/" + method.getParameterCount();
                try {
                    System.out.println(name + " " + told(method.invoke(metadata, arguments(method))));
                } catch (InvocationTargetException error) {
                    System.out.println(name + " FAILED " + error.getCause().getMessage());
                    if (!connection.getAutoCommit()) {
                        connection.rollback();
                    }
                }
            }
        }
    }

    private static Object[] arguments(Method method) {
        Class<?>[] kinds = method.getParameterTypes();
        Object[] found = new Object[kinds.length];
        for (int at = 0; at < kinds.length; at++) {
            if (kinds[at] == String.class) {
                found[at] = method.getName().equals("getTables") || method.getName().equals("getColumns") ? "%" : null;
                if (method.getName().endsWith("Keys") || method.getName().equals("getIndexInfo")
                        || method.getName().equals("getBestRowIdentifier") || method.getName().equals("getVersionColumns")
                        || method.getName().endsWith("Privileges")) {
                    found[at] = at == 2 ? "people" : null;
                }
                if (at == 0) {
                    found[at] = null;
                }
            } else if (kinds[at] == boolean.class) {
                found[at] = Boolean.TRUE;
            } else if (kinds[at] == int.class) {
                found[at] = 1;
            }
        }
        return found;
    }

    private static String told(Object given) throws Exception {
        if (!(given instanceof ResultSet)) {
            return "value";
        }
        StringBuilder columns = new StringBuilder("columns");
        ResultSet rows = (ResultSet) given;
        ResultSetMetaData shape = rows.getMetaData();
        for (int at = 1; at <= shape.getColumnCount(); at++) {
            columns.append(' ').append(shape.getColumnLabel(at).toUpperCase());
        }
        int count = 0;
        while (rows.next()) {
            for (int at = 1; at <= shape.getColumnCount(); at++) {
                rows.getObject(at);
            }
            count++;
        }
        rows.close();
        return columns.append(" rows ").append(Math.min(count, 1)).toString();
    }
}
