# gnuplot 003_rsa_2048_decryption.gp makes 003_rsa_2048_decryption.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '003_rsa_2048_decryption.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "size"
set format x '%.0b %BB'
set xtics rotate by -40
set key outside right top
set title "Figure 10: RSA-2048, decryption"
set format y '%.0s %cs'
plot '003_rsa_2048_decryption.dat' using 2:6 with linespoints lt 3 title "plain code, one thread", \
  '003_rsa_2048_decryption.dat' using 2:7 with linespoints lt 4 title "library, one thread", \
  '003_rsa_2048_decryption.dat' using 2:8 with linespoints lt 5 title "library, all threads", \
  '003_rsa_2048_decryption.dat' using 2:9 with linespoints lt 6 title "GPU kernels", \
  '003_rsa_2048_decryption.dat' using 2:10 with linespoints lt 7 title "GPU with copies"
