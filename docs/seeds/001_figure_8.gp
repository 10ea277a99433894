# gnuplot 001_figure_8.gp makes 001_figure_8.svg.
set terminal svg size 900,600
set output '001_figure_8.svg'
set datafile missing '?'
set title "Figures 8 and 9: AES-256 encryption by the size of the input"
set xlabel 'input'
set ylabel 'seconds'
set key left top
set logscale xy
plot '001_figure_8.dat' using 1:3 with linespoints title "plain code (tables), one thread", \
  '001_figure_8.dat' using 1:4 with linespoints title "plain code, all threads", \
  '001_figure_8.dat' using 1:5 with linespoints title "library, one thread", \
  '001_figure_8.dat' using 1:6 with linespoints title "library, all threads", \
  '001_figure_8.dat' using 1:7 with linespoints title "article's kernel", \
  '001_figure_8.dat' using 1:8 with linespoints title "article's with copies", \
  '001_figure_8.dat' using 1:9 with linespoints title "GPU kernels", \
  '001_figure_8.dat' using 1:10 with linespoints title "GPU with copies"
