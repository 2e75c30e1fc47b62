/* Knows no CUDA: loads the library that its argument names and calls its function main, as a
 * script's interpreter does with an extension module. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "which library?");
    return 9;
  }
  int (*function)(void) = (int (*)(void))dlsym(library, "main");
  return function == NULL ? 8 : function();
}
