# gnuplot 003_figure_11.gp makes 003_figure_11.svg.
set terminal svg size 900,600
set output '003_figure_11.svg'
set datafile missing '?'
set title "Figure 11: RSA key pairs, seconds for each"
set xlabel 'modulus, bits'
set ylabel 'seconds'
set key left top
set logscale xy
plot '003_figure_11.dat' using 1:2 with linespoints title "paper: CPU", \
  '003_figure_11.dat' using 1:3 with linespoints title "paper: GPU", \
  '003_figure_11.dat' using 1:5 with linespoints title "plain code", \
  '003_figure_11.dat' using 1:6 with linespoints title "library, one thread", \
  '003_figure_11.dat' using 1:7 with linespoints title "library, all threads", \
  '003_figure_11.dat' using 1:8 with linespoints title "GPU with copies, one at a time", \
  '003_figure_11.dat' using 1:9 with linespoints title "GPU with copies, 4,096 at a time"
