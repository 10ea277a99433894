# gnuplot 003_aes-256_encryption.gp makes 003_aes-256_encryption.svg.
set terminal svg size 900,600
set output '003_aes-256_encryption.svg'
set datafile missing '?'
set title "Figure 9: AES (aes-256), encryption"
set xlabel 'size'
set ylabel 'seconds'
set key left top
set logscale xy
plot '003_aes-256_encryption.dat' using 2:3 with linespoints title "paper: CPU", \
  '003_aes-256_encryption.dat' using 2:4 with linespoints title "paper: GPU", \
  '003_aes-256_encryption.dat' using 2:6 with linespoints title "plain code", \
  '003_aes-256_encryption.dat' using 2:7 with linespoints title "library, one thread", \
  '003_aes-256_encryption.dat' using 2:8 with linespoints title "library, all threads", \
  '003_aes-256_encryption.dat' using 2:9 with linespoints title "GPU kernels", \
  '003_aes-256_encryption.dat' using 2:10 with linespoints title "GPU with copies"
