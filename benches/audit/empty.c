/* An audit hook that does nothing. */
int empty(const char *event, void *arguments, void *data)
{
    (void)event, (void)arguments, (void)data;
    return 0;
}
