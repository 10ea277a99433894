# gnuplot 003_figure_14_decompression.gp makes 003_figure_14_decompression.svg.
set terminal svg size 900,600
set output '003_figure_14_decompression.svg'
set datafile missing '?'
set title "Figure 14: LZ77, decompression"
set xlabel 'size'
set ylabel 'seconds'
set key left top
set logscale xy
plot '003_figure_14_decompression.dat' using 2:3 with linespoints title "paper: CPU", \
  '003_figure_14_decompression.dat' using 2:4 with linespoints title "paper: GPU", \
  '003_figure_14_decompression.dat' using 2:6 with linespoints title "plain code", \
  '003_figure_14_decompression.dat' using 2:7 with linespoints title "library, one thread", \
  '003_figure_14_decompression.dat' using 2:8 with linespoints title "library, all threads", \
  '003_figure_14_decompression.dat' using 2:9 with linespoints title "GPU kernels", \
  '003_figure_14_decompression.dat' using 2:10 with linespoints title "GPU with copies"
