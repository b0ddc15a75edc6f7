/* A backend over the process protocol in pure C99: ONNX ReduceMean and Mean of float32 and float64, every version.

   gcc -std=c99 -O2 -o mean mean.c && opconform run cmd:./mean --select 'onnx/ReduceMean-*' --select 'onnx/Mean-*'

   docs/process-protocol.md says what goes over stdin and stdout. It is for machines that are little-endian. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends a question that cannot be answered with outputs. */

static jmp_buf question_over;
static long long id;

static void refuse(const char *answer, const char *reason, const char *format, ...) {
    va_list words;
    va_start(words, format);
    printf("{\"id\":%lld,\"answer\":\"%s\",\"reason\":\"%s\",\"words\":\"", id, answer, reason);
    vprintf(format, words);
    puts("\"}");
    va_end(words);
    longjmp(question_over, 1);
}

static void *room(size_t count, size_t size) {
    void *found = calloc(count ? count : 1, size);
    if (!found) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    return found;
}

/* JSON as a tree: an item has a key in an object; a number or word keeps its text. */

typedef struct Item {
    char kind; /* '{' '[' '"' or '0' for numbers and words */
    char *key, *text;
    struct Item *first, *next;
} Item;

static char *at; /* where the line is read */

static void forget(Item *item) {
    while (item) {
        Item *next = item->next;
        forget(item->first);
        free(item->key);
        free(item->text);
        free(item);
        item = next;
    }
}

static char *read_text(void) { /* after the quote; opconform writes ASCII, other letters as \uXXXX, kept as they are */
    char *end = at, *found;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    found = room((size_t)(end - at) + 1, 1);
    memcpy(found, at, (size_t)(end - at));
    at = *end ? end + 1 : end;
    return found;
}

static Item *read_item(void) {
    Item *item = room(1, sizeof *item), **last = &item->first;
    item->kind = *at;
    if (*at == '{' || *at == '[') {
        char close = *at == '{' ? '}' : ']';
        for (at++; *at && *at != close; last = &(*last)->next) {
            char *key = NULL;
            if (close == '}') {
                at++;
                key = read_text();
                at++; /* the colon */
            }
            *last = read_item();
            (*last)->key = key;
            if (*at == ',') at++;
        }
        if (*at) at++;
    } else if (*at == '"') {
        at++;
        item->text = read_text();
    } else {
        size_t length = strcspn(at, ",]}\n");
        item->kind = '0';
        item->text = room(length + 1, 1);
        memcpy(item->text, at, length);
        at += length;
    }
    return item;
}

static Item *get(const Item *object, const char *key) {
    Item *item = object ? object->first : NULL;
    while (item && strcmp(item->key, key) != 0) item = item->next;
    return item;
}

static const char *text(const Item *item) { return item && item->text ? item->text : ""; }
static long long number(const Item *item) { return strtoll(text(item), NULL, 10); }
static int is_null(const Item *item) { return item->kind == '0' && strcmp(item->text, "null") == 0; }

static size_t count(const Item *list) {
    size_t found = 0;
    const Item *item;
    for (item = list ? list->first : NULL; item; item = item->next) found++;
    return found;
}

/* Tensors: numbers as double, which holds every float32 and float64; `long double` for the sum. */

enum { MOST_DIMS = 16 };
enum { MOST_INPUTS = 1024 };

typedef struct {
    size_t rank, size, dims[MOST_DIMS];
    double *numbers;
} Tensor;

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static unsigned char *from_base64(const char *from, size_t *length) {
    unsigned char *bytes = room(strlen(from) / 4 * 3 + 3, 1);
    unsigned long bits = 0;
    int have = 0;
    *length = 0;
    for (; *from && *from != '='; from++) {
        bits = (bits << 6 | (unsigned long)(strchr(LETTERS, *from) - LETTERS)) & 0xffffff;
        have += 6;
        if (have >= 8) bytes[(*length)++] = (unsigned char)(bits >> (have -= 8));
    }
    return bytes;
}

static void print_base64(const unsigned char *bytes, size_t length) {
    size_t i;
    for (i = 0; i < length; i += 3) {
        unsigned long more = i + 1 < length ? bytes[i + 1] : 0, most = i + 2 < length ? bytes[i + 2] : 0;
        unsigned long bits = (unsigned long)bytes[i] << 16 | more << 8 | most;
        putchar(LETTERS[bits >> 18]);
        putchar(LETTERS[bits >> 12 & 63]);
        putchar(i + 1 < length ? LETTERS[bits >> 6 & 63] : '=');
        putchar(i + 2 < length ? LETTERS[bits & 63] : '=');
    }
}

static Tensor read_tensor(const Item *told) {
    Tensor found = {0, 1, {0}, NULL};
    const char *type = text(get(told, "type"));
    size_t i, length, width = strcmp(type, "float32") == 0 ? 4 : 8;
    unsigned char *bytes;
    const Item *dim;
    if (count(get(told, "shape")) > MOST_DIMS) refuse("unsupported", "rank", "more than %d dimensions", MOST_DIMS);
    for (dim = get(told, "shape")->first; dim; dim = dim->next) {
        found.dims[found.rank++] = (size_t)number(dim);
        found.size *= (size_t)number(dim);
    }
    bytes = from_base64(text(get(told, "content")), &length);
    found.numbers = room(found.size, sizeof(double));
    for (i = 0; i < found.size && (i + 1) * width <= length; i++) {
        float single;
        int64_t whole;
        if (strcmp(type, "float32") == 0) {
            memcpy(&single, bytes + i * width, width);
            found.numbers[i] = single;
        } else if (strcmp(type, "int64") == 0) {
            memcpy(&whole, bytes + i * width, width);
            found.numbers[i] = (double)whole;
        } else {
            memcpy(found.numbers + i, bytes + i * width, width);
        }
    }
    free(bytes);
    return found;
}

static void answer(const Tensor *y, const char *type) {
    int single = strcmp(type, "float32") == 0;
    size_t i, width = single ? sizeof(float) : sizeof(double);
    unsigned char *bytes = room(y->size, width);
    for (i = 0; i < y->size; i++) {
        float rounded = (float)y->numbers[i];
        memcpy(bytes + i * width, single ? (void *)&rounded : (void *)(y->numbers + i), width);
    }
    printf("{\"id\":%lld,\"answer\":\"outputs\",\"outputs\":[{\"type\":\"%s\",\"shape\":[", id, type);
    for (i = 0; i < y->rank; i++) printf(i ? ",%zu" : "%zu", y->dims[i]);
    fputs("],\"content\":\"", stdout);
    print_base64(bytes, y->size * width);
    puts("\"}]}");
    free(bytes);
}

/* The operators. */

static Tensor reduce_mean(Tensor x, const int *reduced, int keepdims) {
    Tensor y = {0, 1, {0}, NULL};
    size_t strides[MOST_DIMS] = {0}, i, among = 1;
    long double *sums;
    size_t axis;
    for (axis = x.rank; axis-- > 0;) {
        if (reduced[axis]) {
            among *= x.dims[axis];
        } else {
            strides[axis] = y.size;
            y.size *= x.dims[axis];
        }
    }
    for (axis = 0; axis < x.rank; axis++)
        if (!reduced[axis] || keepdims) y.dims[y.rank++] = reduced[axis] ? 1 : x.dims[axis];
    sums = room(y.size, sizeof *sums);
    for (i = 0; i < x.size; i++) {
        size_t rest = i, place = 0;
        for (axis = x.rank; axis-- > 0; rest /= x.dims[axis]) place += rest % x.dims[axis] * strides[axis];
        sums[place] += x.numbers[i];
    }
    y.numbers = room(y.size, sizeof(double));
    for (i = 0; i < y.size; i++) y.numbers[i] = (double)(sums[i] / (long double)among);
    if (among == 1) /* nothing is added, to keep signs of zeros, which 0 + -0 would lose */
        memcpy(y.numbers, x.numbers, x.size * sizeof(double));
    free(sums);
    return y;
}

static Tensor mean(const Tensor *x, size_t inputs, int broadcasts) {
    Tensor y = {0, 1, {0}, NULL};
    size_t axis, i, k;
    for (k = 0; k < inputs; k++)
        if (x[k].rank > y.rank) y.rank = x[k].rank;
    for (axis = 0; axis < y.rank; axis++) {
        y.dims[axis] = 1;
        for (k = 0; k < inputs; k++) {
            size_t missing = y.rank - x[k].rank, dim = axis < missing ? 1 : x[k].dims[axis - missing];
            if (!broadcasts && (missing || (k && dim != y.dims[axis])))
                refuse("rejected", "invalid", "inputs of different shapes");
            if (dim != 1 && y.dims[axis] != 1 && dim != y.dims[axis])
                refuse("rejected", "invalid", "shapes that do not broadcast");
            if (dim != 1) y.dims[axis] = dim;
        }
        y.size *= y.dims[axis];
    }
    y.numbers = room(y.size, sizeof(double));
    for (i = 0; i < y.size; i++) {
        long double sum = 0;
        for (k = 0; k < inputs; k++) {
            size_t rest = i, place = 0, stride = 1, missing = y.rank - x[k].rank;
            for (axis = y.rank; axis-- > missing; stride *= x[k].dims[axis - missing]) {
                if (x[k].dims[axis - missing] != 1) place += rest % y.dims[axis] * stride;
                rest /= y.dims[axis];
            }
            sum += x[k].numbers[place];
        }
        y.numbers[i] = (double)(sum / (long double)inputs);
    }
    return y;
}

/* The questions. */

typedef struct Prepared {
    long long id;
    Item *question;
    struct Prepared *next;
} Prepared;

static Prepared *prepared;
static Item *question;

static void hello(void) {
    printf("{\"id\":%lld,\"answer\":\"hello\",\"protocol\":1,\"name\":\"mean-in-c\",\"version\":\"1.0\",", id);
    puts("\"standards\":[\"onnx\"],\"operators\":{"
         "\"onnx/ReduceMean\":{\"versions\":[1,11,13,18],\"types\":[\"float32\",\"float64\"]},"
         "\"onnx/Mean\":{\"versions\":[1,6,8,13],\"types\":[\"float32\",\"float64\"]}}}");
}

static void prepare(void) {
    const Item *program = get(question, "program"), *inputs = get(program, "inputs"), *item, *dropped = NULL;
    const char *name = text(get(program, "name")), *type;
    long long version = number(get(program, "version"));
    int reduce = strcmp(name, "ReduceMean") == 0;
    Prepared *made, **place;
    if (*text(get(program, "domain")) || (!reduce && strcmp(name, "Mean") != 0))
        refuse("unsupported", "operator-version", "%s is not here", name);
    for (item = get(program, "attributes")->first; item; item = item->next) {
        const char *given = text(get(item, "name"));
        const char *other = version < 18 ? "axes" : "noop_with_empty_axes";
        int known = reduce ? strcmp(given, "keepdims") == 0 || strcmp(given, other) == 0
                           : version < 6 && strcmp(given, "consumed_inputs") == 0;
        if (!known) refuse("rejected", "invalid", "%s-%lld has no attribute %s", name, version, given);
    }
    if (count(inputs) == 0 || (reduce && count(inputs) > (version < 18 ? 1u : 2u)))
        refuse("rejected", "invalid", "%s-%lld does not take %zu inputs", name, version, count(inputs));
    if (count(inputs) > MOST_INPUTS) refuse("unsupported", "other", "more than %d inputs", MOST_INPUTS);
    if (is_null(inputs->first)) refuse("rejected", "invalid", "the first input is left out");
    type = text(get(inputs->first, "type"));
    for (item = inputs->first; item; item = item->next) {
        const char *wanted = reduce && item != inputs->first ? "int64" : type;
        if (!is_null(item) && strcmp(text(get(item, "type")), wanted) != 0)
            refuse("rejected", "type", "an input is of type %s, not %s", text(get(item, "type")), wanted);
    }
    if (strcmp(type, "float32") != 0 && strcmp(type, "float64") != 0)
        refuse("unsupported", "type", "%s is not here", type);
    if (get(question, "drop")) dropped = get(question, "drop")->first;
    for (; dropped; dropped = dropped->next)
        for (place = &prepared; *place; place = &(*place)->next)
            if ((*place)->id == number(dropped)) {
                Prepared *gone = *place;
                *place = gone->next;
                forget(gone->question);
                free(gone);
                break;
            }
    made = room(1, sizeof *made);
    made->id = id;
    made->question = question;
    made->next = prepared;
    prepared = made;
    question = NULL; /* it is kept */
    printf("{\"id\":%lld,\"answer\":\"prepared\"}\n", id);
}

static void mark_axis(int *reduced, size_t rank, long long axis) {
    if (axis < -(long long)rank || axis >= (long long)rank)
        refuse("rejected", "invalid", "axis %lld of a tensor of rank %zu", axis, rank);
    axis = axis < 0 ? axis + (long long)rank : axis;
    if (reduced[axis]) refuse("rejected", "invalid", "axis %lld twice", axis);
    reduced[axis] = 1;
}

static void run(void) {
    const Prepared *made = prepared;
    const Item *program, *given, *item, *fed = get(question, "inputs")->first;
    const Item *earlier[MOST_INPUTS] = {NULL}; /* tensors of previous inputs: two with one name are fed once */
    Tensor inputs[MOST_INPUTS] = {{0}}, y;
    int has[MOST_INPUTS] = {0}, reduced[MOST_DIMS] = {0}, keepdims = 1, noop = 0, axes = 0;
    size_t i, k = 0;
    while (made && made->id != number(get(question, "program"))) made = made->next;
    if (!made) refuse("error", "other", "no such program was prepared");
    program = get(made->question, "program");
    for (given = get(program, "inputs")->first; given; given = given->next, k++) {
        const Item *before = get(program, "inputs")->first, *told = NULL;
        if (is_null(given)) continue;
        for (i = 0; i < k && !told; i++, before = before->next)
            if (!is_null(before) && strcmp(text(get(before, "name")), text(get(given, "name"))) == 0) told = earlier[i];
        if (!told && !is_null(get(given, "constant"))) {
            told = get(get(made->question, "constants"), text(get(given, "constant")));
        } else if (!told) {
            told = fed;
            fed = fed->next;
        }
        earlier[k] = told;
        has[k] = 1;
        inputs[k] = read_tensor(told);
    }
    if (strcmp(text(get(program, "name")), "Mean") == 0) {
        y = mean(inputs, k, number(get(program, "version")) >= 8);
    } else {
        for (item = get(program, "attributes")->first; item; item = item->next) {
            const Item *value = get(item, "value");
            const char *name = text(get(item, "name"));
            if (strcmp(name, "keepdims") == 0) {
                keepdims = number(value) != 0;
            } else if (strcmp(name, "noop_with_empty_axes") == 0) {
                noop = number(value) != 0;
            } else {
                for (value = value->first; value; value = value->next, axes++)
                    mark_axis(reduced, inputs[0].rank, number(value));
            }
        }
        if (has[1] && inputs[1].rank != 1) refuse("rejected", "rank", "axes of rank %zu", inputs[1].rank);
        for (i = 0; has[1] && i < inputs[1].size; i++, axes++)
            mark_axis(reduced, inputs[0].rank, (long long)inputs[1].numbers[i]);
        for (i = 0; !axes && !noop && i < inputs[0].rank; i++) reduced[i] = 1;
        y = reduce_mean(inputs[0], reduced, keepdims);
    }
    answer(&y, text(get(get(program, "inputs")->first, "type")));
    free(y.numbers);
    for (i = 0; i < k; i++) free(inputs[i].numbers);
}

static char *read_line(void) {
    static char *line;
    static size_t room_for;
    size_t length = 0;
    while (!length || line[length - 1] != '\n') {
        if (room_for < length + 2) {
            room_for = 2 * length + 65536;
            line = realloc(line, room_for);
            if (!line) exit(1);
        }
        if (!fgets(line + length, room_for - length > 1 << 30 ? 1 << 30 : (int)(room_for - length), stdin)) return NULL;
        length += strlen(line + length);
    }
    return line;
}

int main(void) {
    while ((at = read_line()) != NULL) {
        question = read_item();
        id = number(get(question, "id"));
        if (!setjmp(question_over)) {
            const char *ask = text(get(question, "ask"));
            if (strcmp(ask, "hello") == 0)
                hello();
            else if (strcmp(ask, "prepare") == 0)
                prepare();
            else
                run();
        }
        fflush(stdout);
        forget(question);
    }
    return 0;
}
