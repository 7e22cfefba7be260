/* The entry of a program that `ascsim c++` linked.
 *
 * The program is a shared object without an interpreter, so the kernel maps it and jumps here: no library is loaded,
 * no relocation is applied and no initialiser has run. Therefore this file uses nothing but the stack, system calls
 * and addresses relative to the instruction pointer. It starts `python -m ascsim.cli run --report-to stderr <this file>
 * -- arguments`: the program's standard output stays its own.
 */

#if !defined(ASCSIM_PYTHON_PATH)
#error "ASCSIM_PYTHON_PATH is the interpreter to start"
#endif

typedef unsigned long word;

#if defined(__x86_64__)
enum { CALL_WRITE = 1, CALL_EXECVE = 59, CALL_EXIT = 231, CALL_READLINKAT = 267 };
__asm__(".text\n"
        ".globl ascsim_start\n"
        ".hidden ascsim_start\n"
        ".type ascsim_start, @function\n"
        "ascsim_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call ascsim_exec\n"
        "    hlt\n");

static inline word system_call(word number, word a, word b, word c, word d)
{
    word result;
    register word r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { CALL_WRITE = 64, CALL_EXECVE = 221, CALL_EXIT = 94, CALL_READLINKAT = 78 };
__asm__(".text\n"
        ".globl ascsim_start\n"
        ".hidden ascsim_start\n"
        ".type ascsim_start, %function\n"
        "ascsim_start:\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x0, sp\n"
        "    bl ascsim_exec\n"
        "    brk #0\n");

static inline word system_call(word number, word a, word b, word c, word d)
{
    register word x8 __asm__("x8") = number;
    register word x0 __asm__("x0") = a;
    register word x1 __asm__("x1") = b;
    register word x2 __asm__("x2") = c;
    register word x3 __asm__("x3") = d;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
#error "programs that start themselves are supported on x86-64 and AArch64"
#endif

static word length(const char *text)
{
    word count = 0;
    while (((const volatile char *)text)[count]) {
        ++count;
    }
    return count;
}

static void say(const char *text)
{
    system_call(CALL_WRITE, 2, (word)text, length(text), 0);
}

/* The value of `name` (which ends in '=') in the environment, or 0. */
static const char *value_of(const char *const *environment, const char *name)
{
    for (; *environment; ++environment) {
        word at = 0;
        while (name[at] && (*environment)[at] == name[at]) {
            ++at;
        }
        if (!name[at]) {
            return *environment + at;
        }
    }
    return 0;
}

static int has_slash(const char *text)
{
    for (; *text; ++text) {
        if (*text == '/') {
            return 1;
        }
    }
    return 0;
}

__attribute__((noreturn, used, visibility("hidden"))) void ascsim_exec(word *stack)
{
    word count = stack[0];
    const char *const *arguments = (const char *const *)(stack + 1);
    const char *const *environment = arguments + count + 1;
    const char *python = value_of(environment, "ASCSIM_PYTHON=");
    char self[4096];
    word size = system_call(CALL_READLINKAT, -100UL, (word) "/proc/self/exe", (word)self, sizeof(self) - 1);
    const char *path = self;
    if (size < sizeof(self)) {
        self[size] = 0;
    } else {
        path = arguments[0];
    }
    if (!python || !*python) {
        python = ASCSIM_PYTHON_PATH;
    }
    /* A bare name is looked up on PATH, which is what env(1) does. */
    const char *program = has_slash(python) ? python : "/usr/bin/env";
    const char *volatile started[count + 12];
    word at = 0;
    started[at++] = program;
    if (program != python) {
        started[at++] = python;
    }
    started[at++] = "-P";
    started[at++] = "-m";
    started[at++] = "ascsim.cli";
    started[at++] = "run";
    started[at++] = "--report-to";
    started[at++] = "stderr";
    started[at++] = path;
    started[at++] = "--";
    for (word index = 1; index < count; ++index) {
        started[at++] = arguments[index];
    }
    started[at] = 0;
    system_call(CALL_EXECVE, (word)program, (word)started, (word)environment, 0);
    say("ascsim: cannot start ");
    say(python);
    say(": name the Python interpreter that has ascsim in the environment variable ASCSIM_PYTHON\n");
    system_call(CALL_EXIT, 127, 0, 0, 0);
    for (;;) {
    }
}
