# Names every function at namespace level that is longer than `limit` lines. Relies on the
# formatting: the line that opens its body ends with a brace, and a lone brace in the first column
# closes it.
FNR == 1 { start = 0; candidate = 0 }
/^[A-Za-z_]/ { candidate = FNR; head = $0 }
!start && candidate && /\{$/ {
  if (head !~ /^(namespace|extern "C"|struct|class|enum|union|constexpr|const|inline constexpr)/) start = candidate
  candidate = 0
}
/;$/ && !start { candidate = 0 }
/^\}/ {
  if (start && FNR - start + 1 > limit) {
    printf "%s:%d: function-length: %d lines; at most %d (%s)\n", FILENAME, start, FNR - start + 1,
           limit, head
    breaches++
  }
  start = 0
}
END { exit breaches > 0 }
