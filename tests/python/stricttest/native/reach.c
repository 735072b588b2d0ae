/* A client of PostgreSQL that knows nothing of tests: connects to each connection string in turn and prints one line for each. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words)
{
    for (int at = 1; at < count; at++) {
        PGconn *connection = PQconnectdb(words[at]);
        if (PQstatus(connection) == CONNECTION_OK) {
            PGresult *result = PQexec(connection, "select 6 * 7");
            printf("answer %s\n", PQresultStatus(result) == PGRES_TUPLES_OK ? PQgetvalue(result, 0, 0) : "none");
            PQclear(result);
        } else {
            char *text = PQerrorMessage(connection);
            text[strcspn(text, "\n")] = 0;
            printf("error %s\n", text);
        }
        fflush(stdout);
        PQfinish(connection);
    }
    return 0;
}
